"""Ladder: all rungs of one operator on one node: checked, timed beside the reference, and shown with their
source."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QAction, QShowEvent, QStandardItemModel
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QSpinBox,
    QWidget,
)

from bench.questions.ladder_questions import (
    TASKS,
    AssemblyAnswer,
    AssemblyQuestion,
    CountsAnswer,
    CountsQuestion,
    DeviceInfo,
    LadderAnswer,
    LadderQuestion,
    RungInfo,
    node_of,
)
from bench.results.ladder_records import REFERENCE, Ladder, RungCase
from bench.results.ladder_rows import RungRow
from bench.results.records import stem
from bench.run import options
from bench.views import ladder_cards
from bench.views.charts.ladder_charts import live_charts
from bench.words.option import by_name
from gui.base.boxes import as_column, filled, flowing
from gui.base.theme import GAP, PAGE_MARGINS, TIGHT, Theming
from gui.form.fields import field as option_field
from gui.form.fields import fill, values
from gui.form.where_box import WhereRow
from gui.pages.page import Exported, Find, SessionPage, Spot
from gui.sessions.comparison_session import RunState
from gui.sessions.ladder_session import LadderSession
from gui.sessions.session import Standing
from gui.widgets.controls import (
    Combo,
    Lines,
    Progress,
    as_tip,
    labelled,
    menu_button,
    new_action,
    push_button,
    set_role,
)

ORDER = 30
READING = "Reading the model and its rungs …"


class LadderPage(SessionPage):
    """The page of a ladder. gui.menus.ladder connects its session. `use_wanted` carries the RungCase that
    the model is to use, and whether it is to stand in the reference."""

    title = "Ladder"
    session: LadderSession
    link = "Open in &Ladder"
    plan_wanted = Signal()  # shown for the first time: the ladder has to be planned
    use_wanted = Signal(object, bool)
    wanted = Signal(str)  # as LadderBar's
    edit_wanted = Signal(object, int)  # a file, and its line

    def __init__(self, state: RunState, theming: Theming, parent: QWidget | None = None) -> None:
        self._used: Callable[[str, str], str] = lambda node, model: ""
        self._key = ""  # of the case that the user went to; "": the one that the headline is about
        self._seen = ""  # of the case that is shown
        self._who = ""  # label of the rung that the headline is about
        self._wanted = ""  # rung to be selected once its ladder is planned
        self._problem = ""  # path of the file selected that is no rung
        self._charted: object = None  # what the charts show
        self._said = ""  # `ready`, as it was told last
        self._work: object = None  # what the rungs are compiled for
        super().__init__(state, theming, parent)
        self._as_at_first = new_action(self, "Reset the ladder's &panes", self._reset_panes)

    def connect_to(
        self,
        session: LadderSession,
        models: Callable[[], Sequence[str]],
        used: Callable[[str, str], str],
    ) -> None:
        """Use this session. models: returns the models of the form; used: (node, model) → the rung that
        the form has for it."""
        self.take(session, session.state.changed, models)
        self._used = used
        session.saved_rungs.connect(self._on_saved)

    def empty_text(self) -> str:
        return "The ladder of a model's node appears here: every kernel for it, checked and timed."

    @property
    def ready(self) -> str:
        state = self.session.state
        if self.session.planning and state.ladder is None:
            return READING
        refused = refused_device(state.answer)
        if state.answer is None or refused is None:
            return state.error[:1].upper() + state.error[1:] or "Ready. Ctrl+Shift+R runs the ladder."
        where = f"on {state.question.on}" if state.question.on else "here"
        able = next((device.name for device in state.answer.devices if not device.refused), "")
        instead = f" Choose the device {able} above; then Ctrl+Shift+R runs the ladder." if able else ""
        return f"Kernels for {refused.name} cannot run {where}.{instead}"

    def build(self) -> QWidget:
        from gui.pages.ladder.ladder_reader import LadderPanes, LadderReader, LadderTable
        from gui.plots.chart import ChartView
        from gui.widgets.cards import AnswersRow

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
        self.limits = ChartView(
            self.theming, "How close each rung comes to the limits of this machine appears here."
        )
        self.charts = self.speed, self.limits
        for view in self.charts:
            view.menu_opened.connect(self.chart_menu)
        self.speed.picked.connect(self._on_bar)
        self.limits.picked.connect(self._on_point)
        self.table = LadderTable(self.theming)
        self.table.picked.connect(self._on_picked)
        self.table.addActions(self.links)
        self.reader = LadderReader(self.theming)
        self.reader.use_wanted.connect(lambda case: self._on_use(case, False))
        self.reader.swap_wanted.connect(lambda case: self._on_use(case, True))
        self.reader.step_wanted.connect(self.table.step)
        self.reader.history.failed.connect(session.message)
        self.reader.edit_wanted.connect(self.edit_wanted)
        self.reader.assembly_wanted.connect(self._on_assembly_wanted)
        session.assembly.answered.connect(
            lambda question, answer: self.reader.show_assembly(question.rung, answer)
        )
        self.reader.counts_wanted.connect(self._on_counts_wanted)
        session.counts.answered.connect(
            lambda question, answer: self.reader.show_counts(question.rung, answer)
        )
        session.counts.failed.connect(
            lambda question, why: self.reader.show_counts(
                question.rung, CountsAnswer(rung=question.rung, error=why)
            )
        )
        session.assembly.failed.connect(
            lambda question, why: self.reader.show_assembly(
                question.rung, AssemblyAnswer(rung=question.rung, error=why)
            )
        )
        self.panes = LadderPanes(self.speed, self.limits, self.table, self.reader)
        self.table.activated.connect(self.panes.show_source)
        self.answers = AnswersRow(self.theming)
        self.answers.picked.connect(self._on_picked)
        self._top = as_column(self.bar, strip, self.answers, spacing=TIGHT)
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
            functools.partial(self.limits.make_ready, bars=False),
        ]

    def early(self) -> Sequence[Callable[[], object]]:
        # Importing these modules takes half of the time in which the page opens.
        names = ("pygments.lexers", "gui.widgets.code_view", "gui.pages.ladder.ladder_reader")
        return [*(functools.partial(importlib.import_module, name) for name in names), self.prepare]

    # --------------------------------------------------------------------------------------------- showing

    def refresh(self) -> None:
        from gui.pages.ladder.ladder_reader import shown_rows

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
            both = None
            if state.ladder is not None and (state.derived or state.going):
                both = live_charts(state.ladder, state.derived, state.going)
            for view, chart in zip(self.charts, both or (None, None), strict=True):
                view.stated_above = chart.finding if chart is not None else ""
                view.show_chart(chart)
            self._show_answers(state.ladder, state.derived)
        self.table.show_rows(self._shown)
        if self._wanted and not session.planning:
            keys = {row.row.case.rung: row.row.case.key for row in self._shown}
            self._key, self._wanted = keys.get(self._wanted, self._key), ""
        self._show_selected()
        self.show_standing(session.standing)
        if self.ready != self._said:
            self._said = self.ready
            self.readied.emit()

    def spot(self) -> Spot | None:
        ladder = self.session.state.ladder
        if ladder is None or not ladder.job.node or self._body is None:
            return None
        job = ladder.job
        answer = self.session.state.answer
        known = answer.nodes if answer is not None else ()
        nodes = next((info.nodes for info in known if job.node in info.nodes), ()) or (job.node,)
        case = next((row.row.case for row in self._shown if row.row.case.key == self._seen), None)
        kind = "ort" if case is not None and case.is_reference else "engine"
        precision = case.precision if case is not None else ""
        rung = case.rung if case is not None else ""
        return Spot(job.model, nodes, f"{kind}-{job.device}", job.batch, precision, rung)

    def show_spot(self, spot: Spot) -> str:
        """Show the ladder of these nodes, on the device where they ran, at the rung that ran them."""
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

    def findable(self) -> Sequence[Find]:
        answer, question = self.session.state.answer, self.session.state.question
        nodes = [
            Find(
                "Node",
                f"{node.node} of {stem(question.model)}",
                functools.partial(self._go_to_node, node.op, node.node),
                f"{node.op}, in the ladder",
                able=not self.session.active,
                here=True,
            )
            for node in (answer.nodes if answer is not None else ())
        ]
        return nodes + [
            Find(
                "Rung",
                f"{row.case.label} of {self.session.state.question.op}".strip(),
                functools.partial(self._on_picked, row.case.key),
                row.case.idea,
                here=True,
            )
            for row in self.session.state.rows
            if not row.case.is_reference
        ]

    def _go_to_node(self, op: str, node: str) -> None:
        """Show the ladder of another node of the same model."""
        question = self.session.state.question
        self.session.ask(msgspec.structs.replace(question, op=op, node=node, nodes=(), rungs=()))

    def exported(self) -> Exported:
        drawn = [view.chart for view in self.charts] if self._body is not None else []
        return Exported("the ladder", self.session.state.run_folder, tuple(c for c in drawn if c is not None))

    def leave(self) -> bool:
        return self._body is not None and any(view.shrink() for view in self.charts)

    def showcase(self) -> None:
        """Measure the ladder if it is not measured; then select the fastest rung."""
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
        self.plan_wanted.emit()

    # ------------------------------------------------------------------------------------------ the inside

    def _on_whole(self, on: bool) -> None:
        self._top.setVisible(not on)
        self.panes.set_whole(on)

    def _show_answers(self, ladder: Ladder | None, rows: Sequence[RungRow]) -> None:
        self._who = ""
        self.answers.setVisible(ladder is not None and bool(rows))
        if ladder is not None and rows:
            self._who, found = ladder_cards.answers(ladder, rows)
            self.answers.show_answers(self._who, found, ladder_cards.text(ladder, rows))

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
        rungs = [each for each in self._shown if not each.row.case.is_reference]
        found = {each.row.case.key: each for each in self._shown}
        selected = found.get(self._key) or found.get(self._headline()) or next(iter(rungs), None)
        if selected is None:
            self.reader.show_nothing(state.error)
            return
        case, job = selected.row.case, state.ladder.job if state.ladder is not None else None
        self._seen = case.key
        self.table.follow(case.key)
        self.limits.point_out("" if case.is_reference else case.label)
        bars = [each.row.case.key for each in rungs]
        self.speed.select("", float(bars.index(case.key)) if case.key in bars else None)
        charted = self.limits.chart
        standing = [s for panel in charted.panels for s in panel.series] if charted is not None else []
        places = [s.points[0].x for s in standing if s.label == case.label and s.points]
        self.limits.select(case.label, next(iter(places), None))
        used = job is not None and self._used(job.node, job.model) == f"{job.device}/{case.rung}"
        info = None if case.is_reference else state.info(case.rung)
        map_path = state.map_of(selected.row.measurement)
        work = (job.title, job.device) if job is not None else ("", "")
        saves = self.session.saves.of(case.rung, *work) if case.user else ()
        self.reader.show_rung(info, state.rungs, selected, map_path, used, saves)

    def _headline(self) -> str:
        """The key of the case that the answers above are about. While a ladder is climbed the fastest rung
        changes: then the selection stays where it is."""
        if self.session.active:
            return self._seen
        derived = self.session.state.derived
        return next((row.case.key for row in derived if row.case.label == self._who), "")

    def show_standing(self, standing: Standing) -> None:
        session, state = self.session, self.session.state
        self._progress.show_part(standing.done, standing.total, standing.active)
        role = "muted"
        if standing.active:
            words = f"{standing.done} of {standing.total} measured: {standing.doing} …"
        elif session.planning and state.ladder is None:
            words = READING
        elif state.error:
            words, role = state.error[:1].upper() + state.error[1:], "failed"
        elif state.problems:
            problem = state.problems[0]
            more = f" (and {len(state.problems) - 1} more)" if len(state.problems) > 1 else ""
            words, role = f"{problem.path}: {problem.reason}{more}", "failed"
        else:
            # What it is a ladder of stands in the fields above.
            words = ". ".join(filter(None, [state.reading_words.rstrip("."), standing.ended]))
        if self.words.text() != words:
            self.words.setText(words)
            title = state.ladder.job.title if state.ladder is not None else ""
            self.words.setToolTip(as_tip("\n".join(filter(None, [title, words]))))
        set_role(self.words, role)
        self.bar.show_choice(state.question, state.answer, self._models(), session.active)

    def _on_picked(self, key: str) -> None:
        self._key, self._problem = key, ""
        self.invalidate()

    def _on_bar(self, _panel: str, place: float) -> None:
        rungs = [each.row.case.key for each in self._shown if not each.row.case.is_reference]
        if 0 <= int(place) < len(rungs):
            self._on_picked(rungs[int(place)])

    def _on_point(self, label: str, _x: float) -> None:
        known = {each.row.case.rung: each.row.case.key for each in self._shown}
        if (key := known.get(label) or known.get(label.partition(" ")[2])) is not None:
            self._on_picked(key)

    def _on_saved(self, rungs: Sequence[str]) -> None:
        """Show what was saved: first a file that is no rung, else the rung."""
        if problems := self.session.state.problems:
            self._problem = problems[0].path
        elif rungs:
            self._on_picked(rungs[0])
        self.invalidate()

    def _on_assembly_wanted(self, info: RungInfo) -> None:
        state = self.session.state
        if state.ladder is not None:
            # The user's own folders, and not those that a recorded ladder names.
            job = msgspec.structs.replace(state.ladder.job, kernel_dirs=state.question.kernel_dirs)
            measured = state.measurement(info.case.key)
            # For a ladder from another machine, the code for the GPU of that machine.
            capability = measured.facts.get("compute_capability", "") if measured is not None else ""
            arch = f"sm_{capability.replace('.', '')}" if capability else ""
            self.session.assembly.ask(AssemblyQuestion(job=job, rung=info.case.rung, arch=arch))

    def _on_counts_wanted(self, info: RungInfo) -> None:
        state = self.session.state
        if state.ladder is not None:
            job = msgspec.structs.replace(state.ladder.job, kernel_dirs=state.question.kernel_dirs)
            self.session.counts.ask(CountsQuestion(job=job, rung=info.case.rung))

    def _on_use(self, case: RungCase, swap: bool) -> None:
        if self.session.state.ladder is not None:
            self.use_wanted.emit(case, swap)


PAGE = LadderPage


EVERY = "every"
# For each list: the fields of the question that start again when another item is chosen.
FOLLOWING: dict[str, dict[str, object]] = {
    "model": {"op": "", "node": "", "nodes": (), "rungs": ()},
    "op": {"node": "", "rungs": ()},
    "node": {"nodes": ()},
    "device": {"rungs": ()},
    "precision": {},
}
LEAST_LETTERS = 5  # characters that the lists of devices and precisions have room for
RUN_TIP = "Check every rung, then time those that are right (Ctrl+Shift+R)"


def refused_device(answer: LadderAnswer | None) -> DeviceInfo | None:
    """The device of an answer's ladder, if it cannot run that ladder; None if it can, or if there is none."""
    if answer is None or answer.ladder is None:
        return None
    asked = answer.ladder.job.device
    return next((device for device in answer.devices if device.name == asked and device.refused), None)


class LadderBar(QWidget):
    """Asks the session for what the user chooses. `wanted` carries what the window has to do: "folder",
    "template" or "command". The page places `run_button` and `cancel_button`."""

    wanted = Signal(str)

    def __init__(self, session: LadderSession, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._question: LadderQuestion | None = None
        self._rungs: tuple[str, ...] = ()
        self._shown: object = None
        self.model, self.op, self.node, self.device, self.precision = (
            Combo(chosen=functools.partial(self._on_chosen, name)) for name in FOLLOWING
        )
        self.fields = [option_field(by_name(options.LADDER, name)) for name in ("batch", "whole-model")]
        self.batch, self.whole_model = (each.widget for each in self.fields)
        self.batch.setKeyboardTracking(False)
        self.batch.setMaximumWidth(10 * self.batch.fontMetrics().averageCharWidth())
        self.rungs = menu_button("R&ungs", "Which rungs to run")
        self.kernels = menu_button("&Kernels", "Folders of your own kernels")
        self.run_button = push_button(
            "Run the ladder",
            session.run,
            role="primary",
            tip=RUN_TIP,
        )
        self.cancel_button = push_button("&Cancel", session.cancel)
        self.cancel_button.hide()
        fields: dict[str, QComboBox | QSpinBox] = {
            "M&odel": self.model,
            "O&perator": self.op,
            "&Node": self.node,
            "&Batch": self.batch,
            "&Device": self.device,
            "Pr&ecision": self.precision,
        }
        pairs = [self._pair(words, field) for words, field in fields.items()]
        rest = (WhereRow(session.where), self.rungs, self.kernels, self.whole_model)
        flowing(self, *pairs, *rest, spacing=GAP)
        for each in self.fields:
            each.changed.connect(lambda _, field=each: self._choose(**values([field])))

    def show_choice(
        self, question: LadderQuestion, answer: LadderAnswer | None, models: Sequence[str], active: bool
    ) -> None:
        """Show the question and what there is to choose from. models: those of the form."""
        now = (question, answer, tuple(models), active)
        if now == self._shown:
            return
        self._shown, self._question = now, question
        names = dict.fromkeys([*models, TASKS, question.model])
        self.model.offer({name: stem(name) for name in names}, question.model)
        fill(self.fields, question)
        if answer is not None:
            self._show_answer(question, answer)
        refused = refused_device(answer)
        self.run_button.setEnabled(answer is not None and answer.ladder is not None and refused is None)
        self.run_button.setToolTip(f"{refused.name}: {refused.refused}" if refused is not None else RUN_TIP)
        before, after = self.run_button, self.cancel_button
        if not active:
            before, after = after, before
        focused = before.hasFocus()
        before.hide()
        after.show()
        if focused:  # the button that starts a ladder also ends it
            after.setFocus()
        for field in (self.model, self.op, self.node, self.device, self.precision):
            field.setEnabled(not active and field.count() > 0)
        for other in (self.batch, self.rungs, self.kernels, self.whole_model):
            other.setEnabled(not active)
        whole = answer is not None and any(info.whole for info in answer.rungs)
        self.whole_model.setEnabled(not active and not whole)
        self.updateGeometry()

    def _show_answer(self, question: LadderQuestion, answer: LadderAnswer) -> None:
        job = answer.ladder.job if answer.ladder is not None else None
        op = job.op if job is not None else question.op
        # Of a run that was opened: a task of somebody's may be none that is known here.
        ops = dict.fromkeys([*(node.op for node in answer.nodes), *([op] if op else [])])
        self.op.offer({name: name for name in ops}, op)
        nodes = {
            node.node: f"{node.node}: {node.words}" if node.node != node.words else node.words
            for node in answer.nodes
            if node.op == op
        }
        self.node.offer(nodes, node_of(job) if job is not None else question.node)
        self.device.offer({d.name: d.name for d in answer.devices}, job.device if job else question.device)
        where = f"on {question.on}" if question.on else "here"
        items = self.device.model()
        for row, device in enumerate(answer.devices):
            item = items.item(row) if isinstance(items, QStandardItemModel) else None
            if item is not None:
                item.setToolTip(device.refused or f"It can run {where}")
                if device.refused:
                    item.setText(f"{device.name} (not {where})")
        self.device.setMinimumContentsLength(max(LEAST_LETTERS, len(self.device.currentText())))
        refused = [
            f"{d.name} cannot run {where}: {d.refused}; its kernels can be read and compiled."
            for d in answer.devices
            if d.refused
        ]
        self.device.setToolTip("\n".join(refused))
        every = {"": EVERY} if len({info.case.precision for info in answer.rungs}) > 1 else {}
        self.precision.offer(
            every | {name: name for name in answer.precisions},
            (job.precision if job is not None else question.precision) or next(iter(every), "fp32"),
        )
        self._fill_rungs(question, answer)
        self._fill_kernels(question)

    # ------------------------------------------------------------------------------------------ the inside

    def _pair(self, words: str, field: QComboBox | QSpinBox) -> QWidget:
        if isinstance(field, QComboBox):
            most = 50 if field is self.node else 26
            field.setMaximumWidth(most * field.fontMetrics().averageCharWidth())
            if field in (self.device, self.precision):  # the list below is as wide as its longest entry
                field.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
                field.setMinimumContentsLength(LEAST_LETTERS)
            field.view().setTextElideMode(Qt.TextElideMode.ElideNone)
        return labelled(field, words, gap=6)

    def _fill_rungs(self, question: LadderQuestion, answer: LadderAnswer) -> None:
        menu = self.rungs.menu()
        menu.clear()
        self._rungs = tuple(info.case.rung for info in answer.rungs)
        every = menu.addAction("&All rungs")
        every.triggered.connect(lambda: self._choose(rungs=()))
        menu.addSeparator()
        for info in answer.rungs:
            whose = "yours" if info.case.user else "side" if info.case.side else ""
            marks = ", ".join(filter(None, (whose, info.case.language)))
            marks = f" ({marks})" if marks else ""
            menu.addAction(
                new_action(
                    menu,
                    f"{info.case.label}{marks}",
                    lambda on, name=info.case.rung: self._on_rung(name, on),
                    tip=as_tip(info.refused or info.case.idea),
                    checked=not question.rungs or info.case.rung in question.rungs,
                )
            )
        count = len(question.rungs) if question.rungs else len(self._rungs)
        self.rungs.setText(f"R&ungs: {'all' if count == len(self._rungs) else count}")

    def _fill_kernels(self, question: LadderQuestion) -> None:
        menu = self.kernels.menu()
        menu.clear()
        menu.addAction("Open &task…", lambda: self.wanted.emit("task"))
        menu.addAction("&Add kernel folder…", lambda: self.wanted.emit("folder"))
        menu.addAction("&New kernel from template…", lambda: self.wanted.emit("template"))
        if question.kernel_dirs:
            menu.addSeparator()
        for folder in question.kernel_dirs:
            action = menu.addAction(f"Take {Path(folder).name} away")
            action.setToolTip(folder)
            action.triggered.connect(lambda _=False, gone=folder: self._remove(gone))
        menu.addSeparator()
        menu.addAction("&Copy the ladder as a command", lambda: self.wanted.emit("command"))
        count = len(question.kernel_dirs)
        self.kernels.setText(f"&Kernels: {count}" if count else "&Kernels")

    def _choose(self, **fields: object) -> None:
        if self._question is not None:
            self._shown = None  # show the question again, even if it is refused
            self._session.ask(msgspec.structs.replace(self._question, **fields))

    def _on_chosen(self, name: str, _: int) -> None:
        self._choose(**{name: getattr(self, name).currentData()}, **FOLLOWING[name])

    def _on_rung(self, name: str, on: bool) -> None:
        assert self._question is not None
        chosen = set(self._question.rungs or self._rungs)
        chosen = chosen | {name} if on else chosen - {name}
        if not chosen:  # the last one cannot be taken away
            chosen = {name}
        ordered = tuple(rung for rung in self._rungs if rung in chosen)
        self._choose(rungs=() if ordered == self._rungs else ordered)

    def _remove(self, folder: str) -> None:
        assert self._question is not None
        others = tuple(known for known in self._question.kernel_dirs if known != folder)
        self._choose(kernel_dirs=others, rungs=())
