"""Ladder: the rungs of one operator on one node, checked, timed beside the reference, and read."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence

import msgspec
from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QAction, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from bench.questions.ladder_questions import AssemblyAnswer, AssemblyQuestion, RungInfo
from bench.results.ladder_records import REFERENCE, RungCase
from bench.views.charts.ladder_charts import live_charts
from gui.base.boxes import as_column, filled
from gui.base.scale import PAGE_MARGINS, TIGHT
from gui.base.theme import Theming
from gui.pages.page import Exported, SessionPage, Spot
from gui.sessions.ladder_session import LadderSession
from gui.sessions.run_state import RunState
from gui.sessions.session import Standing
from gui.widgets.controls import Progress, new_action, set_role
from gui.widgets.labels import Lines

ORDER = 30


class LadderPage(SessionPage):
    """gui.menus.ladder gives it its session; `use_wanted` carries (node, RungCase, device, model)."""

    title = "Ladder"
    session: LadderSession
    link = "Open in &Ladder"
    asked = Signal()  # shown for the first time: the ladder has to be planned
    use_wanted = Signal(object)
    wanted = Signal(str)  # as LadderBar's
    edit_wanted = Signal(object, int)  # a file, and its line

    def __init__(self, state: RunState, theming: Theming, parent: QWidget | None = None) -> None:
        self._models: Callable[[], Sequence[str]] = tuple
        self._used: Callable[[str, str], str] = lambda node, model: ""
        self._key = ""  # of the case selected
        self._wanted = ""  # rung to be selected once its ladder is planned
        self._problem = ""  # path of the file selected that is no rung
        self._charted: object = None  # what the charts show
        self._work: object = None  # what the rungs are compiled for
        super().__init__(state, theming, parent)
        self._as_at_first = new_action(self, "Reset the ladder's &panes", self._reset_panes)

    def connect_to(
        self,
        session: LadderSession,
        models: Callable[[], Sequence[str]],
        used: Callable[[str, str], str],
    ) -> None:
        """models: those the form has; used: (node, model) → the rung that the form has for it."""
        self.take(session)
        self._models, self._used = models, used
        session.state.changed.connect(self.invalidate)
        session.saved_rungs.connect(self._on_saved)

    def empty_text(self) -> str:
        return "The ladder of a model's node appears here: every kernel for it, checked and timed."

    def build(self) -> QWidget:
        from gui.pages.ladder.ladder_bar import LadderBar
        from gui.pages.ladder.ladder_panes import LadderPanes
        from gui.pages.ladder.ladder_reader import LadderReader
        from gui.pages.ladder.ladder_table import LadderTable
        from gui.plots.chart import ChartView

        session = self.session
        self.bar = LadderBar(session)
        self.bar.wanted.connect(self.wanted)
        self._progress = Progress(140, 8)
        self.words = Lines(3)
        strip = filled(
            QHBoxLayout(),
            *(self.bar.run_button, self.bar.cancel_button, self._progress, (self.words, 1)),
            self.go_button(),
        )
        self.speed = ChartView(
            self.theming, "Press Run the ladder: a bar grows here for each rung as it is measured."
        )
        self.roofline = ChartView(
            self.theming, "How close each rung comes to the limits of this machine appears here."
        )
        self.charts = self.speed, self.roofline
        for view in self.charts:
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
        session.assembly.answered.connect(lambda asked, told: self.reader.show_assembly(asked.rung, told))
        session.assembly.failed.connect(
            lambda asked, why: self.reader.show_assembly(
                asked.rung, AssemblyAnswer(rung=asked.rung, error=why)
            )
        )
        self.panes = LadderPanes(self.speed, self.roofline, self.table, self.reader)
        self.table.activated.connect(self.panes.show_source)
        self._top = as_column(self.bar, strip, spacing=TIGHT)
        self.reader.whole_wanted.connect(self._on_whole)
        body = as_column(self._top, (self.panes, 1), margins=PAGE_MARGINS, spacing=TIGHT)
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
        names = ("pygments.lexers", "gui.widgets.code_view", "gui.pages.ladder.ladder_reader")
        return [*(functools.partial(importlib.import_module, name) for name in names), self.prepare]

    # --------------------------------------------------------------------------------------------- showing

    def refresh(self) -> None:
        from gui.pages.ladder.ladder_table import shown_rows

        session, state = self.session, self.session.state
        self.bar.show_choice(state.question, state.answer, self._models(), session.active)
        refused = {info.case.rung: info.refused for info in state.rungs if info.refused}
        self._shown = shown_rows(state.rows, refused, state.going, state.models)
        now = state.ladder, state.derived, dict(state.going)
        work = state.ladder.job.params if state.ladder is not None else None
        if work != self._work:
            self._work = work
            self.reader.forget_assembly()
        if now != self._charted:
            self._charted = now
            found = None
            if state.ladder is not None and (state.derived or state.going):
                found = live_charts(state.ladder, state.derived, state.going)
            for view, chart in zip(self.charts, found or (None, None), strict=True):
                view.show_chart(chart)
        self.table.show_rows(self._shown)
        if self._wanted and not session.planning:
            keys = {shown.row.case.rung: shown.row.case.key for shown in self._shown}
            self._key, self._wanted = keys.get(self._wanted, self._key), ""
        self._show_selected()
        self.show_standing(session.standing)

    def spot(self) -> Spot | None:
        ladder = self.session.state.ladder
        if ladder is None or not ladder.job.node or self._body is None:
            return None
        job = ladder.job
        answer = self.session.state.answer
        known = answer.nodes if answer is not None else ()
        nodes = next((info.nodes for info in known if job.node in info.nodes), ()) or (job.node,)
        case = next((shown.row.case for shown in self._shown if shown.row.case.key == self._key), None)
        kind = "ort" if case is not None and case.is_reference else "engine"
        precision = case.precision if case is not None else ""
        rung = case.rung if case is not None else ""
        return Spot(job.model, nodes, f"{kind}-{job.device}", job.batch, precision, rung)

    def show_spot(self, spot: Spot) -> str:
        """The ladder of these nodes on the device that they were seen on, at the rung that ran them."""
        session = self.session
        if session.active:
            return session.occupied()
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

    def exported(self) -> Exported:
        shown = [view.chart for view in self.charts] if self._body is not None else []
        return Exported("the ladder", self.session.state.kept, tuple(c for c in shown if c is not None))

    def leave(self) -> bool:
        return self._body is not None and any(view.shrink() for view in self.charts)

    def showcase(self) -> None:
        """Measure, and read the fastest rung."""
        state = self.session.state
        if state.ladder is None:
            return
        if not state.derived and not self.session.active:
            self.session.run()
        self.select_fastest()

    @property
    def at_rest(self) -> bool:
        session = self.session
        return not (session.active or session.planning) and session.state.up_to_date

    def select_fastest(self) -> None:
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
        state = self.session.state
        problem = next((p for p in state.problems if p.path == self._problem), None)
        if problem is not None:
            self.table.follow("")
            for view in self.charts:
                view.select("", None)
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

    def show_standing(self, standing: Standing) -> None:
        session, state = self.session, self.session.state
        self._progress.show_part(standing.done, standing.total, standing.active)
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
        if self.words.text() != words:
            self.words.setText(words)
        set_role(self.words, role)
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
        if problems := self.session.state.problems:
            self._problem = problems[0].path
        elif rungs:
            self._on_picked(rungs[0])
        self.invalidate()

    def _on_assembly_wanted(self, info: RungInfo) -> None:
        state = self.session.state
        if state.ladder is not None:
            # The user's own folders, which the rungs shown are of; not those that a record names.
            job = msgspec.structs.replace(state.ladder.job, kernel_dirs=state.question.kernel_dirs)
            measured = state.measurement(info.case.key)
            # Of a ladder that was climbed elsewhere the code of the GPU there.
            capability = measured.facts.get("compute_capability", "") if measured is not None else ""
            arch = f"sm_{capability.replace('.', '')}" if capability else ""
            self.session.assembly.ask(AssemblyQuestion(job=job, rung=info.case.rung, arch=arch))

    def _on_use(self, case: RungCase) -> None:
        if self.session.state.ladder is not None:
            self.use_wanted.emit(case)


PAGE = LadderPage
