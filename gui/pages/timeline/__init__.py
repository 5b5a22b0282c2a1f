"""Timeline: where the time of a pass goes. The backends below each other on one axis, with tables, parts
and words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QHBoxLayout,
    QMenu,
    QStackedWidget,
    QWidget,
)

from bench.results.events import Activity, Event, HostSpan
from bench.results.profile_records import TIMELINE, CaseProfile, ProfileJob
from bench.results.records import BackendInfo, stem
from bench.run import elsewhere, options
from bench.run.kinds.profile import KIND as PROFILE
from bench.views.charts.definitions import Chart
from bench.words.called import command_line
from bench.words.option import by_name
from gui.base.boxes import HORIZONTAL, VERTICAL, as_column, as_row, filled, flowing, splitter
from gui.base.theme import PAGE_MARGINS, Theming
from gui.form.fields import field as option_field
from gui.form.fields import fill, sentence, values
from gui.form.where_box import WhereRow
from gui.pages.page import Exported, SessionPage, Spot
from gui.sessions.comparison_session import RunState
from gui.sessions.profile_session import FIRST_PASS, PASS, PROCESS, STEADY, ProfileSession, Read
from gui.sessions.session import Standing
from gui.widgets.controls import (
    Combo,
    Elided,
    Label,
    Progress,
    as_tip,
    labelled,
    menu_button,
    push_button,
    tool_buttons,
)
from kernels.errors import InputError
from kernels.precision import MIXED

ORDER = 40
LOW, LOW_WIDTH = 700, 1100  # pixels of the page: below that height, from that width on, its halves are beside
HINT = "Drag to measure, use the wheel to zoom, Shift and drag to move, click for details."
READING = "Reading the events of the profile …"
Kernels = tuple[Mapping[str, str], Sequence[str]]  # as bench.results.records.Job has rungs and kernel_dirs
EMPTY = (
    "A profile shows every kernel, copy, CUDA call and step of a model on one time axis, with their "
    "tables, the parts that add up to a pass, and the parts of the cold start."
)


class TimelinePage(SessionPage):
    """The page of a profile. gui.menus.timeline connects its session."""

    title = "Timeline"
    session: ProfileSession
    link = "Show on the T&imeline"
    wanted = Signal(str)  # as ProfileControls'

    def __init__(self, state: RunState, theming: Theming, parent: QWidget | None = None) -> None:
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
        """Use this session. models: returns the models of the form; kernels: model → the rungs that the
        form has for it, and the folders of the user's kernels."""
        self.take(session, session.state.changed, models)
        self._kernels = kernels

    def show_backends(self, infos: Sequence[BackendInfo]) -> None:
        """Show what the machine can run."""
        self._infos = infos
        self.invalidate()

    def empty_text(self) -> str:
        return EMPTY

    @property
    def ready(self) -> str:
        return "Ready. Profile records what is chosen above."

    def exported(self) -> Exported:
        state = self.session.state
        if not state.fine:
            return Exported("the profile", None)
        picture = Chart(TIMELINE, "", "The timeline alone", "", ())
        return Exported("the profile", state.folder, (picture,))

    def build(self) -> QWidget:
        from gui.pages.timeline.profile_details import ProfileDetails
        from gui.pages.timeline.timeline_view import TimelineView

        session = self.session
        self._folder: object = None  # whose job the controls show
        self._groups: tuple = ()
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
        self._turn()
        return as_column(self.controls, strip, (self.stack, 1), margins=PAGE_MARGINS, spacing=4)

    def _bar(self) -> QWidget:
        """The choices above the timeline: batch size, zero of time, a span to go to, zoom."""

        fields = {"batch": "&Batch", "anchor": "&0 is where", "span": "&Go to"}
        slots = {"span": self._on_span}
        self._choices = {key: Combo(chosen=slots.get(key, lambda _: self.invalidate())) for key in fields}
        self._choices["anchor"].offer({anchor: anchor for anchor in (STEADY, FIRST_PASS, PROCESS)})
        zoom = tool_buttons(
            ("−", "Zoom out (−)", lambda: self.view.zoom_by(1 / 1.5)),
            ("+", "Zoom in (+)", lambda: self.view.zoom_by(1.5)),
            ("All", "Show everything (0)", self.view.fit),
            ("Measured", "Zoom to the measured span (Z)", self.view.zoom_to_measure),
        )
        bar = QWidget()
        pairs = [labelled(self._choices[key], words, gap=4) for key, words in fields.items()]
        flowing(bar, *pairs, as_row(*zoom, spacing=6), spacing=6)
        return bar

    def resizeEvent(self, event: QResizeEvent) -> None:
        """On a low screen the tables stand beside the timeline, so that both have some height."""
        super().resizeEvent(event)
        if self._body is not None:
            self._turn()

    def _turn(self) -> None:
        beside = self.height() < LOW and self.width() >= LOW_WIDTH
        way = HORIZONTAL if beside else VERTICAL
        if self.split.orientation() != way:
            self.split.setOrientation(way)
            room = self.split.width() if beside else self.split.height()
            self.split.setSizes([round(0.55 * room), round(0.45 * room)])

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
        fresh = self._show_tracks(reads)
        if self.view.selected is None:
            self.facts.setText(HINT if reads else READING)
        if self._wanted is not None and len(reads) == len(cases):
            self._show_wanted(self._wanted, reads)
        # What is missing is said here, where it is always visible.
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
        if fresh and self.view.selected is None:
            self._show_pass()

    def showcase(self) -> None:
        """Record a profile if there is none; then show one profiled pass."""
        if self.session.active:
            return
        if self.session.state.profile is None and self.controls.chosen:
            self.controls.request_run()
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
        measured = next((c for c in self.session.state.fine if c.case.key == place.group.key), None)
        if not nodes or measured is None:
            return None
        rung = getattr(event, "rung", "") or next(
            (operator.rung for operator in measured.operators if set(operator.nodes) & set(nodes)), ""
        )
        case = measured.case
        return Spot(case.model, nodes, case.backend, case.batch, case.precision, rung)

    def show_spot(self, spot: Spot) -> str:
        """Select the first kernel of these nodes in a profiled pass, on the backend where they were seen."""
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
            kernels = [e for e in events if nodes_of(e) & set(spot.nodes) and e.run is not None]
            if kernels:
                self.details.choose(read.case.case.backend)
                self.view.select(min(kernels, key=lambda event: event.start_ns))
                return

    def _offer_batches(self, batches: Sequence[int], wanted: Spot | None = None) -> int:
        box = self._choices["batch"]
        chosen = wanted.batch if wanted is not None and wanted.batch in batches else box.currentData()
        box.setEnabled(len(batches) > 1)
        return int(box.offer({batch: f"{batch:,}" for batch in batches}, chosen))

    def _show_tracks(self, reads: Sequence[Read]) -> bool:
        """Draw these cases. Returns whether they are others than before."""
        groups, anchor = tuple(read.tracks for read in reads), self._choices["anchor"].currentData()
        if groups == self._groups and anchor == self.view.anchor:
            return False
        fresh = [g.key for g in groups] != [g.key for g in self._groups]
        self._groups = groups
        self.view.show_groups(groups, anchor)
        box = self._choices["span"]
        box.clear()
        for group in groups:
            for span in group.spans:
                box.addItem(f"{group.backend}: {span.title}", (span, group))
        box.setEnabled(box.count() > 0)
        if (pair := box.parentWidget()) is not None:
            pair.updateGeometry()  # which has kept its width from when it was empty
        return fresh

    def _show_pass(self) -> None:
        """Show the first profiled pass of the case in the tables, or else of the slowest: this is what one
        wants to see first, and not the seconds of loading before it. By the slowest of all, what the others
        do would be too small to see."""
        box = self._choices["span"]
        of = self.details.backend.currentText()
        first = [i for i in range(box.count()) if box.itemData(i)[0].title == f"{PASS} 1"]
        first = [i for i in first if box.itemData(i)[1].backend == of] or first
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
    """The nodes of an event, or of anything else that has some."""
    return set(getattr(event, "nodes", ()))


PAGE = TimelinePage


BATCHES = {
    "1": "one image at a time",
    "1,16": "two sizes",
    "1,16,1024": "three sizes",
    "1..1024": "by doubling",
}
NUMBER = 7  # characters that a field of a number has room for
TRACE = "A trace for Perfetto (ui.perfetto.dev) or Chrome"


class ProfileControls(QWidget):
    """Asks the session for what the user wants to profile. `wanted` carries what the window has to do:
    "open" or "trace"."""

    wanted = Signal(str)

    def __init__(
        self,
        session: ProfileSession,
        kernels: Callable[[str], tuple[Mapping[str, str], Sequence[str]]] = lambda model: ({}, ()),
        parent: QWidget | None = None,
    ) -> None:
        """kernels: model → the rungs that the form has for it, and the folders of the user's kernels."""
        super().__init__(parent)
        self._session, self._kernels = session, kernels
        self._infos: tuple[BackendInfo, ...] = ()
        self._wanted: set[str] = set()
        self._chosen = False  # by the user, or by a profile that was opened
        self.model = Combo()
        self.backends = menu_button("")
        self.backends.setMenu(_Staying(self.backends))
        self.batches = QComboBox()
        self.batches.setEditable(True)
        self.batches.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.batches.setMinimumContentsLength(6)
        self.batches.addItems(list(BATCHES))
        self.batches.setToolTip("1,16, or 1..1024 for 1, 2, 4 …; each size and backend has its own process")
        self.precision = Combo()
        self.precision.offer({"fp32": "fp32"})
        self.fields = [
            option_field(by_name(options.PROFILE, name)) for name in ("runs", "counters", "max-error")
        ]
        self.runs, self.counters, self.max_error = (each.widget for each in self.fields)
        fill(self.fields, ProfileJob(model="", backends=()))
        self.runs.setMaximumWidth(NUMBER * self.runs.fontMetrics().averageCharWidth())
        self.run_button = push_button(
            "&Profile",
            self.request_run,
            role="primary",
            tip="Record every kernel, copy, call and step, and the cold start",
        )
        self.cancel_button = push_button("Cancel", session.cancel)
        self.kernels = Label(role="muted")
        self.model.currentIndexChanged.connect(lambda _: self.show_kernels())
        fields = {
            "&Model": self.model,
            "Bac&kends": self.backends,
            "Batch si&zes": self.batches,
            "Pre&cision": self.precision,
            "Ma&x error": self.max_error,
            "Pa&sses": self.runs,
        }
        buttons = [
            push_button(words, do, tip=tip)
            for words, tip, do in (
                ("&Open…", "Show a saved profile", lambda: self.wanted.emit("open")),
                ("Save &trace…", TRACE, lambda: self.wanted.emit("trace")),
                ("Cop&y as command", "The command line that records the same profile", self.copy_command),
            )
        ]
        pairs = [labelled(field, words, gap=4) for words, field in fields.items()]
        budget = pairs[[*fields].index("Ma&x error")]
        self.precision.currentTextChanged.connect(lambda text: budget.setVisible(text == MIXED))
        budget.setVisible(False)
        last = (self.counters, self.kernels, self.run_button, self.cancel_button, *buttons)
        flowing(self, *pairs, WhereRow(session.where), *last, spacing=6)
        # The same height for all, because the layout aligns their upper edges.
        children = self.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)
        high = max(child.sizeHint().height() for child in children)
        for child in children:
            child.setFixedHeight(high)
        self.show_standing(Standing())
        self._show_backends()

    def job(self) -> ProfileJob:
        """The job that is described. Raises InputError, with one sentence, if there is none."""
        backends = self.chosen
        if not backends:
            raise InputError(
                "Choose a backend to profile."
                if self._infos
                else f"Asking {self._session.where.words} what it can run …"
            )
        if refused := self._session.where.refused:
            raise InputError(refused)
        if self.model.currentData() is None:
            raise InputError("Choose a model to profile.")
        rungs, folders = self._kernels(self.model.currentData())
        fields = values(self.fields)
        if self.precision.currentText() != MIXED:
            fields["max_error"] = None
        return ProfileJob(
            model=self.model.currentData(),
            backends=backends,
            batches=by_name(options.PROFILE, "batch").value.read_line(self.batches.currentText()),
            precision=self.precision.currentText(),
            rungs=dict(rungs),
            kernel_dirs=tuple(folders),
            **fields,
        )

    def set_job(self, job: ProfileJob) -> None:
        """Show the job of a profile."""
        self.model.choose(job.model)
        self._wanted, self._chosen = set(job.backends), True
        self._show_backends()
        self.batches.setCurrentText(",".join(map(str, job.batches)))
        fill(self.fields, job)
        self.precision.choose(job.precision)

    def choose_model(self, model: str) -> None:
        """Choose this model, if it is in the list."""
        self.model.choose(next((known for known in self.model.offered if stem(known) == stem(model)), None))

    def show_kernels(self) -> None:
        """Say which kernels of the form are profiled with the chosen model."""
        model = self.model.currentData()
        rungs, folders = self._kernels(model) if model is not None else ({}, ())
        words = [sentence(key, rung, [model]) for key, rung in rungs.items()]
        self.kernels.setText(f"with {len(words)} chosen kernel{'s' * (len(words) > 1)}" if words else "")
        self.kernels.setToolTip(as_tip("\n".join([*words, *(f"kernels of {f}" for f in folders)])))
        self.kernels.setVisible(bool(words))

    @property
    def chosen(self) -> tuple[str, ...]:
        """The backends to profile, in the machine's order."""
        return tuple(info.name for info in self._infos if not info.unavailable and info.name in self._wanted)

    def show_models(self, models: Sequence[str]) -> None:
        """Offer these models: names of the catalogue, and paths."""
        names = {model: Path(model).stem if model.endswith(".onnx") else model for model in models}
        self.model.offer(names, self.model.currentData())

    def show_infos(self, infos: Sequence[BackendInfo]) -> None:
        """Offer what the machine can run. Until the user chooses, the backends of the fastest device are
        chosen."""
        if tuple(infos) == self._infos:
            return
        self._infos = tuple(infos)
        if not self._chosen:
            able = [i for i in infos if not i.unavailable and not i.variant_of and not i.rival]
            devices = {info.device for info in able}
            best = "cuda" if "cuda" in devices else "cpu"
            self._wanted = {info.name for info in able if info.device == best}
        self._show_backends()

    def show_standing(self, standing: Standing) -> None:
        self.run_button.setVisible(not standing.active)
        self.cancel_button.setVisible(standing.active)
        self.cancel_button.setEnabled(standing.phase != "cancelling")

    def copy_command(self) -> None:
        try:
            arguments = [*PROFILE.arguments(self.job()), *elsewhere.arguments(self._session.where.name)]
            QApplication.clipboard().setText(command_line(arguments))
        except InputError as error:
            self._session.message.emit(str(error))

    def request_run(self) -> None:
        """As the button: start the profile, or say what is missing."""
        try:
            job = self.job()
        except InputError as error:
            self._session.message.emit(str(error))
            return
        self._session.run(job)

    def _show_backends(self) -> None:
        menu = self.backends.menu()
        menu.clear()
        for info in self._infos:
            if info.rival and info.unavailable:
                continue  # not installed; `doctor` lists it
            action = QAction(info.name, menu, checkable=True)
            action.setChecked(info.name in self.chosen)
            action.setEnabled(not info.unavailable)
            action.setToolTip(info.unavailable)
            action.toggled.connect(lambda on, name=info.name: self._on_backend(name, on))
            menu.addAction(action)
        self._tell_backends()

    def _on_backend(self, name: str, on: bool) -> None:
        wanted = set(self.chosen)
        self._wanted, self._chosen = wanted | {name} if on else wanted - {name}, True
        self._tell_backends()

    def _tell_backends(self) -> None:
        self.backends.setText(", ".join(self.chosen) or "none")
        able = {p: p for info in self._infos if info.name in self.chosen for p in info.precisions}
        if able:
            self.precision.offer(able, self.precision.currentData())


class _Staying(QMenu):
    """A menu of choices that stays open while one chooses. Tooltips say why one cannot be chosen."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setToolTipsVisible(True)

    def mouseReleaseEvent(self, event: object) -> None:
        action = self.activeAction()
        if action is not None and action.isEnabled() and action.isCheckable():
            action.trigger()
        else:
            super().mouseReleaseEvent(event)  # type: ignore[arg-type]  # a mouse event
