"""Timeline: where the time of a pass goes, both backends one over the other, in tables, parts and words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QProgressBar,
    QSplitter,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from bench.charts import Chart
from bench.profile.events import Activity, Event, HostSpan
from bench.profile.records import TIMELINE, CaseProfile
from bench.results.records import BackendInfo, stem
from gui.base.boxes import filled
from gui.base.scale import PAGE_MARGINS
from gui.base.theme import Theming
from gui.pages.page import Exported, Page, Spot
from gui.sessions.profile_session import ProfileSession, Read
from gui.sessions.run_state import RunState
from gui.sessions.standing import Standing
from gui.sessions.timeline_lanes import FIRST_PASS, PASS, PROCESS, STEADY
from gui.widgets.combo import Combo
from gui.widgets.labels import Label

ORDER = 40
Kernels = tuple[Mapping[str, str], Sequence[str]]  # as bench.results.records.Job has rungs and kernel_dirs
EMPTY = (
    "Press Profile: every kernel, copy, CUDA call and step of a model appears here on one time axis, with "
    "their tables, the parts that add up to a pass, and the parts of the cold start."
)


class TimelinePage(Page):
    """gui.menus.timeline gives it its session."""

    title = "Timeline"
    form = False
    ways = ()
    link = "Show on the T&imeline"
    trace_wanted = Signal()
    open_wanted = Signal()

    def __init__(self, state: RunState, theming: Theming, parent: QWidget | None = None) -> None:
        self.session: ProfileSession | None = None
        self._models: Callable[[], Sequence[str]] = tuple
        self._kernels: Callable[[str], Kernels] = lambda model: ({}, ())
        self._infos: Sequence[BackendInfo] = ()
        self._wanted: Spot | None = None  # to be selected once its events are read
        super().__init__(state, theming, parent)

    def connect_to(
        self,
        session: ProfileSession,
        models: Callable[[], Sequence[str]],
        kernels: Callable[[str], Kernels] = lambda model: ({}, ()),
    ) -> None:
        """models: those that the form has; kernels: model → the rungs chosen for it there, and the folders of
        the user's own."""
        self.session, self._models, self._kernels = session, models, kernels
        session.state.changed.connect(self.invalidate)
        session.stands.connect(self._on_standing)

    def show_backends(self, infos: Sequence[BackendInfo]) -> None:
        """What the machine can run."""
        self._infos = infos
        self.invalidate()

    def empty_text(self) -> str:
        return EMPTY

    def has_content(self) -> bool:
        return self.session is not None

    def exported(self) -> Exported:
        state = self.session.state if self.session is not None else None
        if state is None or not state.fine:
            return Exported("the profile", None)
        picture = Chart(TIMELINE, "", "The timeline alone", "", ())
        return Exported("the profile", state.folder, (picture,))

    def build(self) -> QWidget:
        from gui.pages.timeline.profile_controls import ProfileControls
        from gui.pages.timeline.profile_details import ProfileDetails
        from gui.pages.timeline.timeline_view import TimelineView
        from gui.widgets.labels import Elided

        session = self.session
        assert session is not None
        self._folder: object = None  # whose job the controls show
        self._groups: tuple = ()
        self._in_front = ""  # the backend whose pass is shown first, if it is there
        self._choices: dict[str, QComboBox] = {}
        self.controls = ProfileControls(self._kernels)
        self.controls.run_wanted.connect(session.run)
        self.controls.cancel_wanted.connect(session.cancel)
        self.controls.open_wanted.connect(self.open_wanted)
        self.controls.trace_wanted.connect(self.trace_wanted)
        self.controls.told.connect(session.told)
        self._progress = QProgressBar()
        self._progress.setTextVisible(False)
        self._progress.setFixedSize(140, 8)
        self._words = Label()
        self._words.setProperty("role", "muted")
        strip = filled(QHBoxLayout(), self._progress, (self._words, 1))
        self.view = TimelineView(self.theming)
        self.view.picked.connect(self._on_event)
        self.view.addActions(self.links)
        self._facts = Label()
        self._facts.setWordWrap(True)
        self._facts.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._go = self.go_button()
        self._go.setEnabled(False)
        about = filled(QHBoxLayout(), (self._facts, 1), (self._go, 0, Qt.AlignmentFlag.AlignTop))
        self._notes = Elided()
        self._notes.setProperty("role", "muted")
        self.details = ProfileDetails(self.theming, session.background)
        self.details.tables.picked.connect(self.view.select)
        self.details.picked.connect(self.view.select)
        for table in (self.details.tables.activities, self.details.findings):
            table.addActions(self.links)
        self.details.parts.picked.connect(self._on_bar)
        top = QWidget()
        filled(
            QVBoxLayout(top),
            self._bar(),
            (self.view, 1),
            about,
            self._notes,
            margins=(0, 0, 0, 0),
            spacing=3,
        )
        self.split = QSplitter(Qt.Orientation.Vertical)
        self.split.setObjectName("timeline-rows")
        self.split.setChildrenCollapsible(False)
        self.split.addWidget(top)
        self.split.addWidget(self.details)
        self.split.setSizes([380, 330])
        nothing = Label(EMPTY)
        nothing.setProperty("role", "empty")
        nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        nothing.setWordWrap(True)
        self.stack = QStackedWidget()
        self.stack.addWidget(nothing)
        self.stack.addWidget(self.split)
        body = QWidget()
        filled(QVBoxLayout(body), self.controls, strip, (self.stack, 1), margins=PAGE_MARGINS, spacing=4)
        self._on_standing(session.standing)
        return body

    def _bar(self) -> QWidget:
        """What is shown, and from where it is counted."""
        from gui.pages.timeline.profile_controls import pair
        from gui.widgets.flow_layout import FlowLayout

        made = QWidget()
        bar = FlowLayout(made, spacing=6)
        for key, words in (("batch", "&Batch"), ("anchor", "&0 is where"), ("span", "&Go to")):
            box = Combo()
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
            box.activated.connect(self._on_span if key == "span" else self._on_chosen)
            self._choices[key] = box
            bar.addWidget(pair(words, box))
        for anchor in (STEADY, FIRST_PASS, PROCESS):
            self._choices["anchor"].addItem(anchor, anchor)
        for sign, words, do in (
            ("−", "Zoom out (−)", lambda: self.view.zoom_by(1 / 1.5)),
            ("+", "Zoom in (+)", lambda: self.view.zoom_by(1.5)),
            ("All", "Show everything (0)", self.view.fit),
            ("Measured", "Zoom to the measured span (Z)", self.view.zoom_to_measure),
        ):
            button = QToolButton()
            button.setText(sign)
            button.setToolTip(words)
            button.setAccessibleName(words.partition(" (")[0])
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.clicked.connect(do)
            bar.addWidget(button)
        return made

    # --------------------------------------------------------------------------------------------- showing

    def refresh(self) -> None:
        session = self.session
        assert session is not None
        state = session.state
        self.controls.show_models(self._models())
        self.controls.show_infos(self._infos)
        self.controls.show_kernels()
        if state.profile is not None and state.folder != self._folder:
            self._folder = state.folder
            if not session.active:
                self.controls.set_job(state.profile.job)
        self._on_standing(session.standing)
        self.stack.setCurrentIndex(1 if state.fine else 0)
        if not state.fine:
            return
        cases = state.at(self._offer_batches(state.batches, self._wanted))
        session.read(cases)
        reads = [read for case in cases if (read := state.read(case)) is not None]
        self._show_lanes(reads)
        if self._wanted is not None and len(reads) == len(cases):
            self._show_wanted(self._wanted, reads)
        # What is missing is said here and not hidden in a tab.
        notes: dict[str, list[str]] = {}
        for case in cases:
            for note in case.notes:
                notes.setdefault(note, []).append(case.case.backend)
        self._notes.setText(".  ".join(f"{', '.join(of)}: {note}" for note, of in notes.items()))
        self._notes.setVisible(bool(notes))
        assert state.profile is not None
        self.details.show_cases(
            state.profile, state.fine, cases, {read.case.case.key: read for read in reads}
        )

    def showcase(self) -> None:
        """Take a profile where there is none; else one profiled pass of each."""
        session = self.session
        if session is None or session.active:
            return
        if session.state.profile is None and self.controls.chosen:
            self.controls.request_run()
        self._in_front = "engine-cuda"
        self._show_pass()

    @property
    def at_rest(self) -> bool:
        return self.session is None or not (self.session.active or self.session.background.busy)

    @property
    def batch(self) -> int:
        return int(self._choices["batch"].currentData() or 0)

    def spot(self) -> Spot | None:
        event = self.view.selected if self._body is not None else None
        place = self.view.place_of(event)
        if event is None or place is None or self.session is None:
            return None
        nodes: tuple[str, ...] = getattr(event, "nodes", ())
        made = next((c for c in self.session.state.fine if c.case.key == place.group.key), None)
        if not nodes or made is None:
            return None
        rung = getattr(event, "rung", "") or next(
            (operator.rung for operator in made.operators if set(operator.nodes) & set(nodes)), ""
        )
        case = made.case
        return Spot(case.model, nodes, case.backend, case.batch, case.precision, rung)

    def show_spot(self, spot: Spot) -> str:
        """The first kernel of these nodes in a profiled pass, on the backend that it was seen on."""
        state = self.session.state if self.session is not None else None
        model = stem(spot.model)
        if state is None or state.profile is None or stem(state.profile.job.model) != model or not state.fine:
            if self._body is not None:
                self.controls.choose_model(spot.model)
            return (
                f"No profile of {model} is open: open one, or press Profile on the Timeline page; then its "
                "kernels can be shown."
            )
        if not any(nodes_of(operator) & set(spot.nodes) for c in state.fine for operator in c.operators):
            return f"The profile of {model} has nothing of {', '.join(spot.nodes)}."
        self._wanted = spot
        self.invalidate()
        return ""

    def _show_wanted(self, spot: Spot, reads: Sequence[Read]) -> None:
        self._wanted = None
        for read in sorted(reads, key=lambda read: read.case.case.backend != spot.backend):
            events: list[Activity | HostSpan] = [*read.events.activities, *read.events.intervals]
            found = [e for e in events if nodes_of(e) & set(spot.nodes) and e.run is not None]
            if found:
                self.details.choose(read.case.case.backend)
                self.view.select(min(found, key=lambda event: event.start_ns))
                return

    def _offer_batches(self, batches: Sequence[int], wanted: Spot | None = None) -> int:
        box = self._choices["batch"]
        if [box.itemData(i) for i in range(box.count())] != list(batches):
            chosen = box.currentData()
            box.clear()
            for batch in batches:
                box.addItem(f"{batch:,}", batch)
            box.setCurrentIndex(max(0, box.findData(chosen)))
        if wanted is not None and (at := box.findData(wanted.batch)) >= 0:
            box.setCurrentIndex(at)
        box.setEnabled(box.count() > 1)
        return int(box.currentData())

    def _show_lanes(self, reads: Sequence[Read]) -> None:
        groups, anchor = tuple(read.lanes for read in reads), self._choices["anchor"].currentData()
        if groups == self._groups and anchor == self.view.anchor:
            return
        fresh = [g.key for g in groups] != [g.key for g in self._groups]
        self._groups = groups
        self.view.show_groups(groups, anchor)
        box = self._choices["span"]
        box.clear()
        for group in groups:
            for span in group.spans:
                box.addItem(f"{group.backend}: {span.title}", (span, group))
        box.setEnabled(box.count() > 0)
        if fresh:
            self._show_pass()

    def _show_pass(self) -> None:
        """The first profiled pass of the case that takes longest for it (or of the backend that a picture has
        in front): what one came to see, and not the seconds of loading before it."""
        box = self._choices["span"]
        first = [i for i in range(box.count()) if box.itemData(i)[0].title == f"{PASS} 1"]
        first = [i for i in first if box.itemData(i)[1].backend == self._in_front] or first
        if first:
            spans = {i: box.itemData(i)[0] for i in first}
            box.setCurrentIndex(max(first, key=lambda i: spans[i].end_ns - spans[i].start_ns))
            self._on_span()

    def _on_standing(self, standing: Standing) -> None:
        if self._body is None and not hasattr(self, "controls"):
            return
        self.controls.show_standing(standing)
        self._progress.setVisible(standing.active)
        self._progress.setRange(0, standing.total)
        self._progress.setValue(standing.done)
        words = standing.doing if standing.active else standing.ended
        self._words.setText(words[:1].upper() + words[1:])
        self._words.setVisible(bool(words))

    # -------------------------------------------------------------------------------------------- choosing

    def _on_chosen(self) -> None:
        self.invalidate()

    def _on_span(self) -> None:
        data = self._choices["span"].currentData()
        if data is not None:
            self.view.look_at(*data)

    def _on_event(self, event: Event | None) -> None:
        self._go.setEnabled(self.spot() is not None)
        self.details.follow(event, self.view.place_of(event))
        if event is None:
            self._facts.setText(
                "Drag to measure, use the wheel to zoom, Shift and drag to move, click for details."
            )
            return
        self._facts.setText(self.view.words(event))

    def _on_bar(self, case: CaseProfile) -> None:
        box = self._choices["batch"]
        box.setCurrentIndex(max(0, box.findData(case.case.batch)))
        self.details.choose(case.case.backend)
        self.invalidate()


def nodes_of(event: object) -> set[str]:
    """The nodes of whatever has some."""
    return set(getattr(event, "nodes", ()))


PAGE = TimelinePage
