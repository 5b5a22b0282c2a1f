"""Ladder: the rungs of one operator on one node, checked, timed beside the reference, and read."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence

import msgspec
from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QAction, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from bench.ladder.questions import AssemblyAnswer, AssemblyQuestion, NodeInfo, RungInfo
from bench.ladder.records import REFERENCE, RungCase
from bench.ladder.show.live_charts import charts
from gui.base.boxes import filled
from gui.base.scale import PAGE_MARGINS, TIGHT
from gui.base.theme import Theming
from gui.pages.page import Exported, Page, Spot
from gui.sessions.ladder_session import LadderSession
from gui.sessions.run_state import RunState
from gui.sessions.standing import Standing
from gui.widgets.labels import Lines

ORDER = 30


class LadderPage(Page):
    """gui.menus.ladder gives it its session; `use_wanted` carries (node, RungCase, device, model)."""

    title = "Ladder"
    form = False
    ways = ()
    link = "Open in &Ladder"
    asked = Signal()  # shown for the first time: the ladder has to be planned
    use_wanted = Signal(object)
    folder_wanted = Signal()
    template_wanted = Signal()
    command_wanted = Signal()
    edit_wanted = Signal(object, int)  # a file, and its line
    chart_menu = Signal(object, object)  # the context menu of a chart, and the chart, before it is shown

    def __init__(self, state: RunState, theming: Theming, parent: QWidget | None = None) -> None:
        self.session: LadderSession | None = None
        self._models: Callable[[], Sequence[str]] = tuple
        self._used: Callable[[str, str], str] = lambda node, model: ""
        self._key = ""  # of the case selected
        self._wanted = ""  # rung to be selected once its ladder is planned
        self._problem = ""  # path of the file selected that is no rung
        self._charted: object = None  # what the charts show
        self._work: object = None  # what the rungs are compiled for
        super().__init__(state, theming, parent)
        self._as_at_first = QAction("Reset the ladder's &panes", self)
        self._as_at_first.triggered.connect(self._reset_panes)

    def connect_to(
        self,
        session: LadderSession,
        models: Callable[[], Sequence[str]],
        used: Callable[[str, str], str],
    ) -> None:
        """models: those the form has; used: (node, model) → the rung that the form has for it."""
        self.session, self._models, self._used = session, models, used
        session.state.changed.connect(self.invalidate)
        session.stands.connect(self._on_standing)
        session.saved_rungs.connect(self._on_saved)

    def empty_text(self) -> str:
        return "The ladder of a model's node appears here: every kernel for it, checked and timed."

    def has_content(self) -> bool:
        return self.session is not None

    def build(self) -> QWidget:
        from gui.pages.ladder.ladder_bar import LadderBar
        from gui.pages.ladder.ladder_panes import LadderPanes
        from gui.pages.ladder.ladder_reader import LadderReader
        from gui.pages.ladder.ladder_table import LadderTable
        from gui.plots.chart import ChartView

        session = self.session
        assert session is not None
        self.bar = LadderBar()
        self.bar.chosen.connect(session.ask)
        self.bar.run_wanted.connect(session.run)
        self.bar.cancel_wanted.connect(session.cancel)
        self.bar.folder_wanted.connect(self.folder_wanted)
        self.bar.template_wanted.connect(self.template_wanted)
        self.bar.command_wanted.connect(self.command_wanted)
        self._progress = QProgressBar()
        self._progress.setTextVisible(False)
        self._progress.setFixedSize(140, 8)
        self._words = Lines(3)
        strip = filled(
            QHBoxLayout(),
            *(self.bar.run_button, self.bar.cancel_button, self._progress, (self._words, 1)),
            self.go_button(),
        )
        self.speed = ChartView(
            self.theming, "Press Run the ladder: a bar grows here for each rung as it is measured."
        )
        self.roofline = ChartView(
            self.theming, "How close each rung comes to the limits of this machine appears here."
        )
        for view in (self.speed, self.roofline):
            view.menu_opened.connect(self.chart_menu)
        self.speed.picked.connect(self._on_bar)
        self.roofline.picked.connect(self._on_point)
        self.table = LadderTable(self.theming)
        self.table.picked.connect(self._on_picked)
        self.table.addActions(self.links)
        self.reader = LadderReader(self.theming)
        self.reader.use_wanted.connect(self._on_use)
        self.reader.step_wanted.connect(self.table.step)
        self.reader.edit_wanted.connect(self.edit_wanted)
        self.reader.assembly_wanted.connect(self._on_assembly_wanted)
        session.assembly.answered.connect(self._on_assembly)
        self.panes = LadderPanes(self.speed, self.roofline, self.table, self.reader)
        self.table.activated.connect(self.panes.show_source)
        self._top = QWidget()
        filled(QVBoxLayout(self._top), self.bar, strip, margins=(0, 0, 0, 0), spacing=TIGHT)
        self.reader.whole_wanted.connect(self._on_whole)
        body = QWidget()
        filled(QVBoxLayout(body), self._top, (self.panes, 1), margins=PAGE_MARGINS, spacing=TIGHT)
        self._on_standing(session.standing)
        for wait_ms, step in enumerate(self.ahead(), start=1):
            QTimer.singleShot(40 * wait_ms, self, step)
        return body

    def actions_offered(self) -> Sequence[QAction]:
        return [self._as_at_first]

    def ahead(self) -> Sequence[Callable[[], object]]:
        return [
            functools.partial(self.speed.make_ready, bars=True),
            functools.partial(self.roofline.make_ready, bars=False),
        ]

    def early(self) -> Sequence[Callable[[], object]]:
        # Half of what the page takes at first are its modules, the highlighter's among them.
        names = ("pygments.lexers", "gui.widgets.highlight", "gui.pages.ladder.ladder_reader")
        return [*(functools.partial(importlib.import_module, name) for name in names), self.prepare]

    # --------------------------------------------------------------------------------------------- showing

    def refresh(self) -> None:
        from gui.pages.ladder.ladder_table import shown_rows

        session = self.session
        assert session is not None
        state = session.state
        self.bar.show_choice(state.question, state.answer, self._models(), session.active)
        refused = {info.case.rung: info.refused for info in state.rungs if info.refused}
        self._shown = shown_rows(state.rows, refused, state.going, state.models)
        now = (state.ladder, state.derived, dict(state.going))
        work = state.ladder.job.params if state.ladder is not None else None
        if work != self._work:
            self._work = work
            self.reader.forget_assembly()
        if now != self._charted:
            self._charted = now
            if state.ladder is not None and (state.derived or state.going):
                speed, roofline = charts(state.ladder, state.derived, state.going)
                self.speed.show_chart(speed)
                self.roofline.show_chart(roofline)
            else:
                self.speed.show_chart(None)
                self.roofline.show_chart(None)
        self.table.show_rows(self._shown)
        if self._wanted and not session.planning:
            keys = {shown.row.case.rung: shown.row.case.key for shown in self._shown}
            self._key, self._wanted = keys.get(self._wanted, self._key), ""
        self._show_selected()
        self._on_standing(session.standing)

    def spot(self) -> Spot | None:
        ladder = self.session.state.ladder if self.session is not None else None
        if ladder is None or not ladder.job.node or self._body is None:
            return None
        job = ladder.job
        nodes = next((i.nodes for i in self._nodes() if job.node in i.nodes), ()) or (job.node,)
        case = next((shown.row.case for shown in self._shown if shown.row.case.key == self._key), None)
        kind = "ort" if case is not None and case.is_reference else "engine"
        precision = case.precision if case is not None else ""
        rung = case.rung if case is not None else ""
        return Spot(job.model, nodes, f"{kind}-{job.device}", job.batch, precision, rung)

    def show_spot(self, spot: Spot) -> str:
        """The ladder of these nodes on the device that they were seen on, at the rung that ran them."""
        session = self.session
        if session is None or session.active:
            return session.occupied() if session is not None else super().show_spot(spot)
        self._wanted = REFERENCE if spot.backend.startswith("ort-") else spot.rung
        self._problem = ""
        before = session.state.question
        session.ask(
            msgspec.structs.replace(
                before,
                model=spot.model,
                op="",
                node="",
                nodes=spot.nodes,
                batch=spot.batch or before.batch,
                device=spot.backend.rpartition("-")[2] or before.device,
                rungs=(),
            )
        )
        return ""

    def _nodes(self) -> Sequence[NodeInfo]:
        answer = self.session.state.answer if self.session is not None else None
        return answer.nodes if answer is not None else ()

    def exported(self) -> Exported:
        session = self.session
        charts = (self.speed.chart, self.roofline.chart) if self._body is not None else ()
        folder = session.state.kept if session is not None else None
        return Exported("the ladder", folder, tuple(chart for chart in charts if chart is not None))

    def leave(self) -> bool:
        return self._body is not None and any(view.shrink() for view in (self.speed, self.roofline))

    def restyle(self) -> None:
        self.speed.restyle()
        self.roofline.restyle()

    def showcase(self) -> None:
        """Measure, and read the fastest rung."""
        session = self.session
        if session is None or session.state.ladder is None:
            return
        if not session.state.derived and not session.active:
            session.run()
        self.select_fastest()

    @property
    def at_rest(self) -> bool:
        session = self.session
        return session is None or (not (session.active or session.planning) and session.state.up_to_date)

    def select_fastest(self) -> None:
        if self.session is None:
            return
        timed = [row for row in self.session.state.derived if row.time and not row.case.is_reference]
        if timed:
            best = min(timed, key=lambda row: row.time.value if row.time else 0.0)
            self._on_picked(best.case.key)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.asked.emit()

    # ------------------------------------------------------------------------------------------ the inside

    def _on_whole(self, on: bool) -> None:
        self._top.setVisible(not on)
        self.panes.set_whole(on)

    def _reset_panes(self) -> None:
        if self._body is not None:
            self.panes.reset()

    def _show_selected(self) -> None:
        session = self.session
        assert session is not None
        state = session.state
        problem = next((p for p in state.problems if p.path == self._problem), None)
        if problem is not None:
            self.table.follow("")
            self.speed.select("", None)
            self.roofline.select("", None)
            self.reader.show_problem(problem)
            return
        rungs = [shown for shown in self._shown if not shown.row.case.is_reference]
        found = next((shown for shown in self._shown if shown.row.case.key == self._key), None)
        found = found or next(iter(rungs), None)
        if found is None:
            self.reader.show_nothing(state.error)
            return
        case, job = found.row.case, state.ladder.job if state.ladder is not None else None
        self._key = case.key
        self.table.follow(case.key)
        self.roofline.point_out("" if case.is_reference else case.label)
        bars = [shown.row.case.key for shown in rungs]
        self.speed.select("", float(bars.index(case.key)) if case.key in bars else None)
        charted = self.roofline.chart
        standing = [s for panel in charted.panels for s in panel.series] if charted is not None else []
        places = [s.points[0].x for s in standing if s.label == case.label and s.points]
        self.roofline.select(case.label, next(iter(places), None))
        used = job is not None and self._used(job.node, job.model) == f"{job.device}/{case.rung}"
        info = None if case.is_reference else state.info(case.rung)
        map_path = state.map_of(found.row.measurement)
        self.reader.show_rung(info, state.rungs, found, map_path, used)

    def _on_standing(self, standing: Standing) -> None:
        if self._body is None and not hasattr(self, "_words"):
            return
        session = self.session
        assert session is not None
        state = session.state
        self._progress.setVisible(standing.active)
        self._progress.setRange(0, standing.total)
        self._progress.setValue(standing.done)
        role = "muted"
        if standing.active:
            words = f"{standing.done} of {standing.total}: {standing.doing} …"
        elif session.planning and state.ladder is None:
            words = "Reading the model and its rungs …"
        elif state.error:
            words, role = state.error[:1].upper() + state.error[1:], "failed"
        elif state.problems:
            problem = state.problems[0]
            more = f" (and {len(state.problems) - 1} more)" if len(state.problems) > 1 else ""
            words, role = f"{problem.path}: {problem.reason}{more}", "failed"
        else:
            title = state.ladder.job.title if state.ladder is not None else ""
            words = ". ".join(filter(None, [title, state.reading_words.rstrip("."), standing.ended]))
        if self._words.text() != words or self._words.property("role") != role:
            self._words.setText(words)
            self._words.setProperty("role", role)
            self._words.style().polish(self._words)
        self.bar.show_choice(state.question, state.answer, self._models(), session.active)

    def _on_picked(self, key: str) -> None:
        self._key, self._problem = key, ""
        self.invalidate()

    def _on_bar(self, _panel: str, place: float) -> None:
        rungs = [shown.row.case.key for shown in self._shown if not shown.row.case.is_reference]
        if 0 <= int(place) < len(rungs):
            self._on_picked(rungs[int(place)])

    def _on_point(self, label: str, _x: float) -> None:
        known = {shown.row.case.rung: shown.row.case.key for shown in self._shown}
        if (key := known.get(label) or known.get(label.partition(" ")[2])) is not None:
            self._on_picked(key)

    def _on_saved(self, rungs: Sequence[str]) -> None:
        """Show what was saved: a file that is no rung before one that is."""
        session = self.session
        assert session is not None
        if session.state.problems:
            self._problem = session.state.problems[0].path
        elif rungs:
            self._on_picked(rungs[0])
        self.invalidate()

    def _on_assembly_wanted(self, info: RungInfo) -> None:
        session = self.session
        if session is not None and session.state.ladder is not None:
            # The user's own folders, which the rungs shown are of; not those that a record names.
            dirs = session.state.question.kernel_dirs
            job = msgspec.structs.replace(session.state.ladder.job, kernel_dirs=dirs)
            measured = session.state.measurement(info.case.key)
            # Of a ladder that was climbed elsewhere the code of the GPU there.
            capability = measured.facts.get("compute_capability", "") if measured is not None else ""
            arch = f"sm_{capability.replace('.', '')}" if capability else ""
            session.assembly.ask(AssemblyQuestion(job=job, rung=info.case.rung, arch=arch))

    def _on_assembly(self, asked: AssemblyQuestion, answer: AssemblyAnswer) -> None:
        self.reader.show_assembly(asked.rung, answer)

    def _on_use(self, case: RungCase) -> None:
        session = self.session
        if session is not None and session.state.ladder is not None:
            self.use_wanted.emit(case)


PAGE = LadderPage
