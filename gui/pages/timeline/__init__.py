"""Timeline: where the time of a pass goes, both backends one over the other, in tables, parts and words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QStackedWidget,
    QWidget,
)

from bench.results.events import Activity, Event, HostSpan
from bench.results.profile_records import TIMELINE, CaseProfile
from bench.results.records import BackendInfo, stem
from bench.views.charts.definitions import Chart
from gui.base.boxes import VERTICAL, as_column, filled, flowing, splitter
from gui.base.scale import PAGE_MARGINS
from gui.base.theme import Theming
from gui.pages.page import Exported, SessionPage, Spot
from gui.sessions.profile_session import ProfileSession, Read
from gui.sessions.run_state import RunState
from gui.sessions.session import Standing
from gui.sessions.timeline_lanes import FIRST_PASS, PASS, PROCESS, STEADY
from gui.widgets.combo import Combo
from gui.widgets.controls import Progress, tool_buttons
from gui.widgets.labels import Elided, Label, labelled

ORDER = 40
HINT = "Drag to measure, use the wheel to zoom, Shift and drag to move, click for details."
Kernels = tuple[Mapping[str, str], Sequence[str]]  # as bench.results.records.Job has rungs and kernel_dirs
EMPTY = (
    "Press Profile: every kernel, copy, CUDA call and step of a model appears here on one time axis, with "
    "their tables, the parts that add up to a pass, and the parts of the cold start."
)


class TimelinePage(SessionPage):
    """gui.menus.timeline gives it its session."""

    title = "Timeline"
    session: ProfileSession
    link = "Show on the T&imeline"
    wanted = Signal(str)  # as ProfileControls'

    def __init__(self, state: RunState, theming: Theming, parent: QWidget | None = None) -> None:
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
        self.take(session)
        self._models, self._kernels = models, kernels
        session.state.changed.connect(self.invalidate)

    def show_backends(self, infos: Sequence[BackendInfo]) -> None:
        """What the machine can run."""
        self._infos = infos
        self.invalidate()

    def empty_text(self) -> str:
        return EMPTY

    def exported(self) -> Exported:
        state = self.session.state
        if not state.fine:
            return Exported("the profile", None)
        picture = Chart(TIMELINE, "", "The timeline alone", "", ())
        return Exported("the profile", state.folder, (picture,))

    def build(self) -> QWidget:
        from gui.pages.timeline.profile_controls import ProfileControls
        from gui.pages.timeline.profile_details import ProfileDetails
        from gui.pages.timeline.timeline_view import TimelineView

        session = self.session
        self._folder: object = None  # whose job the controls show
        self._groups: tuple = ()
        self._in_front = ""  # the backend whose pass is shown first, if it is there
        self.controls = ProfileControls(session, self._kernels)
        self.controls.wanted.connect(self.wanted)
        self._progress = Progress(140, 8)
        self.words = Label(role="muted")
        strip = filled(QHBoxLayout(), self._progress, (self.words, 1))
        self.view = TimelineView(self.theming)
        self.view.picked.connect(self._on_event)
        self.view.addActions(self.links)
        self.facts = Label(wrap=True, selectable=True)
        self._go = self.go_button()
        self._go.setEnabled(False)
        about = filled(QHBoxLayout(), (self.facts, 1), (self._go, 0, Qt.AlignmentFlag.AlignTop))
        self._notes = Elided(role="muted")
        self.details = ProfileDetails(self.theming, session.background)
        self.details.tables.picked.connect(self.view.select)
        self.details.picked.connect(self.view.select)
        for table in (self.details.tables.activities, self.details.findings):
            table.addActions(self.links)
        self.details.parts.picked.connect(self._on_bar)
        top = as_column(self._bar(), (self.view, 1), about, self._notes, spacing=3)
        self.split = splitter(
            "timeline-rows", VERTICAL, top, self.details, sizes=[380, 330], collapsible=False
        )
        nothing = Label(EMPTY, role="empty", centred=True, wrap=True)
        self.stack = QStackedWidget()
        self.stack.addWidget(nothing)
        self.stack.addWidget(self.split)
        return as_column(self.controls, strip, (self.stack, 1), margins=PAGE_MARGINS, spacing=4)

    def _bar(self) -> QWidget:
        """What is shown, and from where it is counted."""

        fields = {"batch": "&Batch", "anchor": "&0 is where", "span": "&Go to"}
        shown = {"span": self._on_span}
        self._choices = {key: Combo(chosen=shown.get(key, lambda _: self.invalidate())) for key in fields}
        self._choices["anchor"].offer({anchor: anchor for anchor in (STEADY, FIRST_PASS, PROCESS)})
        zoom = tool_buttons(
            ("−", "Zoom out (−)", lambda: self.view.zoom_by(1 / 1.5)),
            ("+", "Zoom in (+)", lambda: self.view.zoom_by(1.5)),
            ("All", "Show everything (0)", self.view.fit),
            ("Measured", "Zoom to the measured span (Z)", self.view.zoom_to_measure),
        )
        made = QWidget()
        pairs = [labelled(self._choices[key], words, gap=4) for key, words in fields.items()]
        flowing(made, *pairs, *zoom, spacing=6)
        return made

    # --------------------------------------------------------------------------------------------- showing

    def refresh(self) -> None:
        session, state = self.session, self.session.state
        self.controls.show_models(self._models())
        self.controls.show_infos(self._infos)
        self.controls.show_kernels()
        if state.profile is not None and state.folder != self._folder:
            self._folder = state.folder
            if not session.active:
                self.controls.set_job(state.profile.job)
        self.show_standing(session.standing)
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
        if self.session.active:
            return
        if self.session.state.profile is None and self.controls.chosen:
            self.controls.request_run()
        self._in_front = "engine-cuda"
        self._show_pass()

    @property
    def at_rest(self) -> bool:
        return not (self.session.active or self.session.background.busy)

    @property
    def batch(self) -> int:
        return int(self._choices["batch"].currentData() or 0)

    def spot(self) -> Spot | None:
        event = self.view.selected if self._body is not None else None
        place = self.view.place_of(event)
        if event is None or place is None:
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
        state = self.session.state
        model = stem(spot.model)
        if state.profile is None or stem(state.profile.job.model) != model or not state.fine:
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
        chosen = wanted.batch if wanted is not None and wanted.batch in batches else box.currentData()
        box.setEnabled(len(batches) > 1)
        return int(box.offer({batch: f"{batch:,}" for batch in batches}, chosen))

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

    def show_standing(self, standing: Standing) -> None:
        self.controls.show_standing(standing)
        self._progress.show_part(standing.done, standing.total, standing.active)
        words = standing.doing if standing.active else standing.ended
        self.words.setText(words[:1].upper() + words[1:])
        self.words.setVisible(bool(words))

    # -------------------------------------------------------------------------------------------- choosing

    def _on_span(self, _: int = 0) -> None:
        data = self._choices["span"].currentData()
        if data is not None:
            self.view.look_at(*data)

    def _on_event(self, event: Event | None) -> None:
        self._go.setEnabled(self.spot() is not None)
        self.details.follow(event, self.view.place_of(event))
        self.facts.setText(self.view.words(event) if event is not None else HINT)

    def _on_bar(self, case: CaseProfile) -> None:
        self._choices["batch"].choose(case.case.batch)
        self.details.choose(case.case.backend)
        self.invalidate()


def nodes_of(event: object) -> set[str]:
    """The nodes of whatever has some."""
    return set(getattr(event, "nodes", ()))


PAGE = TimelinePage
