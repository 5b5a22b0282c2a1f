"""The table of rungs, each with its result or with what is being done with it; the reader of the selected
rung: its idea, source, difference to another rung, compiled code and mistake; and how the page divides its
room between charts, table and reader."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QStackedLayout,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from bench.questions.ladder_questions import AssemblyAnswer, CountsAnswer, KernelProblem, RungInfo
from bench.results import doubt
from bench.results.ladder_records import RungCase, RungMeasurement
from bench.results.ladder_rows import RungRow
from bench.results.saves import Save
from bench.results.stats import SAME_BOUND
from bench.views.charts.ladder_charts import Going
from bench.views.sentences import ladder_story as story
from bench.views.tables import ladder_report_tables as report_tables
from bench.views.tables import ladder_tables
from bench.views.tables.ladder_tables import WORDS
from bench.views.tables.table import Column, Table, to_markdown
from bench.words import orders, units
from gui.base.boxes import HORIZONTAL, VERTICAL, as_column, filled, scrolled, splitter, tabbed
from gui.base.theme import Theming, put_icon, scaled
from gui.pages.ladder.error_map import ErrorMapView
from gui.pages.ladder.history import HistoryView
from gui.pages.ladder.rung_source import AssemblyView, RungDiff, SourceView
from gui.plots.chart import ChartGrid, ChartView
from gui.widgets.controls import Combo, Label, Lines, push_button, set_role, shortcut, tool_button
from gui.widgets.table_view import TableView

# Columns of ladder_tables; the others stand in the CSV. After the gain come those of the model.
BEFORE = ("number", "rung", "disposition", "median_s", "relative", "speedup", "gain")
COMPILED_COLUMNS = ("registers", "shared_nbytes", "stack_nbytes", "spill_nbytes", "occupancy")
AFTER = ("flops_per_s", "bytes_per_s", "share_of_limit", "rel_l2_error", *COMPILED_COLUMNS, "reason")
# These columns are shown only if they have values; the others are shown from the start.
LATE = {*COMPILED_COLUMNS, "model_s", "model_speedup", "reason"}


@dataclass(frozen=True)
class LadderRow:
    """A row. refused: why the rung cannot run, known before it is tried; going: what is being done with
    it, None for nothing; model, model_going: the same for the whole model with this rung."""

    row: RungRow
    refused: str = ""
    going: Going | None = None
    model: RungRow | None = None
    model_going: Going | None = None

    @property
    def waits(self) -> bool:
        """Whether it is not measured yet."""
        return self.row.measurement.disposition == "cancelled"

    @property
    def result(self) -> str:
        m = self.row.measurement
        if self.going is not None:
            return self.going.told
        if self.waits:
            return "refused" if self.refused else ""
        if m.finding is not None:
            return ladder_tables.wrong(m.finding)
        return ladder_tables.WORDS.get(m.disposition, m.disposition)

    @property
    def why(self) -> str:
        """Why it has no figures, or will have none."""
        if self.going is not None:
            return ""
        return self.row.measurement.reason or (self.refused if self.waits else "")

    @property
    def whole(self) -> str:
        """The time of the whole model, or its state."""
        if self.model_going is not None:
            return self.model_going.told
        if self.model is None:
            return ""
        if self.model.time is not None:
            return doubt.marked(units.duration(self.model.time.value), self.model.doubts)
        disposition = self.model.measurement.disposition
        return ladder_tables.WORDS.get(disposition, disposition)

    @property
    def failed(self) -> bool:
        return self.going is None and self.row.measurement.disposition not in (
            "ok",
            "unsupported",
            "cancelled",
        )


def _rung_name(ladder_row: LadderRow) -> str:
    case = ladder_row.row.case
    marks = [word for word in ("yours" * case.user, case.language, "side" * case.side) if word]
    of = f" in {case.precision}" if case.is_reference and case.precision != "fp32" else ""
    return case.rung + of + (f" ({', '.join(marks)})" if marks else "")


_CELLS: dict[str, Callable[[LadderRow], str]] = {
    "number": lambda ladder_row: f"{number:02d}" if (number := ladder_row.row.case.number) else "",
    "rung": _rung_name,
    "disposition": lambda ladder_row: ladder_row.result,
    "reason": lambda ladder_row: ladder_row.why,
}


def _rung_columns(names: Sequence[str]) -> Iterator[Column[LadderRow]]:
    """Columns of the ladder's own tables that also show what is being done."""
    known = {column.name: column for column in (*ladder_tables.COLUMNS, ladder_tables.RELATIVE)}
    for name in names:
        column = replace(known[name].through(_rung_row), idle=name in COMPILED_COLUMNS)
        if name in _CELLS:
            column = replace(column, cell=_CELLS[name])
        if name in ("flops_per_s", "bytes_per_s"):  # the heading has the unit
            column = replace(column, text=units.si)
        yield column


def _rung_row(ladder_row: LadderRow) -> RungRow:
    return ladder_row.row


RUNG_COLUMNS: tuple[Column[LadderRow], ...] = (
    *_rung_columns(BEFORE),
    Column(
        "model_s",
        title="whole model",
        tip="Median time of the whole model with this rung at the node",
        cell=lambda ladder_row: ladder_row.whole,
    ),
    Column(
        "model_speedup",
        lambda ladder_row: (
            ladder_row.model.speedup.value if ladder_row.model and ladder_row.model.speedup else None
        ),
        units.times,
        lambda ladder_row: ladder_row.model.speedup_doubts if ladder_row.model else (),
        "its vs ref.",
        "Whether it is faster than the reference's whole model: that one's time over this one's, by rounds",
        cell=lambda ladder_row: (
            orders.interval_words(ladder_row.model.verdict, ladder_row.model.speedup)
            if ladder_row.model
            else ""
        ),
    ),
    *_rung_columns(AFTER),
)


ARROW = 16  # pixels beside the heading of a sorted column


class LadderTable(TableView):
    """`picked` carries the key of the case that the user went to."""

    widest = 240
    margin = 2

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__("Rungs", theming, parent)
        self._shown: Sequence[LadderRow] = ()
        self.horizontalHeader().setMinimumSectionSize(30)
        self.show_rows([])

    def show_rows(self, rows: Sequence[LadderRow]) -> None:
        if list(rows) != self._shown:
            self._shown = list(rows)
            self.show_table(Table(RUNG_COLUMNS, self._shown))

    def step(self, by: int) -> None:
        """Go `by` rungs on (negative: back)."""
        row = self.currentIndex().row() + by
        if 0 <= row < len(self.source.rows):
            self.go_to(row, max(0, self.currentIndex().column()))

    def key(self, row: LadderRow) -> Hashable:
        return row.row.case.key

    def target(self, row: LadderRow) -> str:
        return row.row.case.key

    def tip(self, row: LadderRow, column: Column[LadderRow]) -> str:
        return super().tip(row, column) or row.why or row.row.case.idea

    def ink(self, row: LadderRow, column: Column[LadderRow]) -> QColor | None:
        theme = self.theme
        if row.failed and column.name == "disposition":
            return QColor(theme.failed)
        if row.going is not None and column.name == "disposition":
            return QColor(theme.accent)
        refused = (row.refused and row.waits) or row.row.measurement.disposition == "unsupported"
        return QColor(theme.muted) if refused else None

    def bold(self, row: LadderRow, column: Column[LadderRow]) -> bool:
        return column.name == "rung" and (row.row.case.is_reference or row.row.case.user)

    def hides(self, column: Column[LadderRow]) -> bool:
        return column.name in LATE and super().hides(column)

    def heading_width(self, place: int) -> int:
        heading = self.source.columns[place].heading
        header = self.horizontalHeader()
        arrow = ARROW if header.sortIndicatorSection() == place else 0
        return header.fontMetrics().horizontalAdvance(heading) + 14 + arrow

    def copied(self) -> Table[RungRow]:
        """All columns of the rows that are measured."""
        return ladder_tables.table([each.row for each in self.chosen_rows() if not each.waits])

    def markdown(self, table: Table[RungRow]) -> str:
        return to_markdown(report_tables.of_rungs(table.rows))


def shown_rows(
    rows: Sequence[RungRow],
    refused: Mapping[str, str],
    going: Mapping[str, Going],
    models: Sequence[RungRow] = (),
) -> list[LadderRow]:
    """The rows of the table. refused: rung → why it cannot run; going: case key → what is being done;
    models: the rows of the whole models."""
    whole = {row.case.key: row for row in models}
    ladder_rows = []
    for row in rows:
        key = msgspec.structs.replace(row.case, scope="model").key
        ladder_rows.append(
            LadderRow(
                row,
                refused.get(row.case.rung, ""),
                going.get(row.case.key),
                whole.get(key),
                going.get(key),
            )
        )
    return ladder_rows


SOURCE, DIFFERENCE, ASSEMBLY, FINDING = "&Source", "D&ifference", "Asse&mbly", "Findin&g"
HISTORY = "Histor&y"
TEMPLATE = "its template"  # what a rung of the user's is compared with, beside other rungs
COMPILED = ".cu"  # the suffix of what is compiled, so that there is something to show; or it has a language


class LadderReader(QWidget):
    """Shows one rung. `use_wanted` carries the RungCase that the model is to use, `swap_wanted`
    the one that is to stand in the reference; `step_wanted` how many
    rungs to go on (negative: back); `edit_wanted` a file and a line for the editor; `assembly_wanted`
    the RungInfo whose compiled code is needed, `counts_wanted` that whose lines are to be counted. Each
    tab is filled when it is first seen."""

    use_wanted = Signal(object)
    swap_wanted = Signal(object)
    edit_wanted = Signal(Path, int)
    assembly_wanted = Signal(object)
    counts_wanted = Signal(object)
    step_wanted = Signal(int)
    whole_wanted = Signal(bool)  # whether it wants the whole page

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        self._shown: object = None
        self._filled: dict[QWidget, object] = {}
        self._info: RungInfo | None = None
        self._rungs: Sequence[RungInfo] = ()
        self._measurement: RungMeasurement | None = None
        self._map: Path | None = None
        self._problem: KernelProblem | None = None
        self.title = Label(role="heading", wrap=True)
        self.words, self.state = Lines(3), Lines(4)
        self.use_button = push_button(
            "Use in mode&l",
            self._on_use,
            tip="Use this rung for this node of the model when the comparison runs (F5)",
        )
        self.swap_button = push_button(
            "S&wap in",
            self._on_swap,
            tip="Compare ONNX Runtime, and PyTorch where it is installed, with this rung in the node's place "
            "when the comparison runs (F5)",
        )
        self.edit_button = push_button(
            "Edi&t…", self._on_edit, tip="Open this file in your editor, at the line of the caret (F4)"
        )
        shortcut(self, "F4", "Open the kernel in an editor", self._on_edit)
        self.source = SourceView(theming)
        self.source.counts_wanted.connect(self._on_counts)
        self.assembly = AssemblyView(theming)
        self.diff = RungDiff(theming)
        self.finding = ErrorMapView(theming)
        self.history = HistoryView(theming)
        self.versions = scrolled(self.history, focus=False)
        self._saves: Sequence[Save] = ()
        # In a scroll area: the pictures would take the room of the source, and of the charts.
        self._pictures = scrolled(self.finding, focus=False)
        self._against = Combo("The rung to compare with", self._fill)
        line = filled(QHBoxLayout(), Label("&Against", buddy=self._against), self._against, 1)
        self._beside = as_column(line, (self.diff, 1), margins=(4, 4, 4, 4))
        self.tabs = tabbed(
            {
                SOURCE: self.source,
                DIFFERENCE: self._beside,
                FINDING: self._pictures,
                ASSEMBLY: self.assembly,
                HISTORY: self.versions,
            }
        )
        self.tabs.currentChanged.connect(self._fill)
        self.whole = tool_button(
            flat=True,
            name="The whole page",
            tip="Take the whole page, or give it back (Esc)",
            toggled=self._on_whole,
        )
        put_icon(self.whole, "whole", theming, "muted")
        self.tabs.setCornerWidget(self.whole)
        self.steps = tuple(self._step_button(step) for step in (-1, 1))
        buttons = (self.edit_button, self.swap_button, self.use_button)
        head = filled(QHBoxLayout(), *self.steps, (self.title, 1), *buttons, spacing=4)
        filled(
            QVBoxLayout(self),
            head,
            self.words,
            self.state,
            (self.tabs, 1),
            0,
            margins=(6, 0, 0, 0),
            spacing=3,
        )

    def set_compact(self, on: bool) -> None:
        """Whether the words above the tabs take one or two lines at most. Then their tooltip has all of
        them."""
        self.words.most, self.state.most = (1, 2) if on else (3, 4)
        for words in (self.words, self.state):
            words.updateGeometry()

    # --------------------------------------------------------------------------------------------- showing

    def show_rung(
        self,
        info: RungInfo | None,
        rungs: Sequence[RungInfo],
        ladder_row: LadderRow,
        map_path: Path | None,
        used: bool,
        saves: Sequence[Save] = (),
    ) -> None:
        """Show a rung and its result. info: None for the reference; map_path: the file of its wrong
        answer; used: whether the form has it for this node; saves: its versions, if it is the user's."""
        now = ("rung", info, tuple(rungs), ladder_row, map_path, used, tuple(saves))
        if now == self._shown:
            return
        self._shown = now
        other = self._info is None or info is None or self._info.path != info.path
        self._info, self._rungs, self._problem, self._saves = info, rungs, None, saves
        self._measurement, self._map = ladder_row.row.measurement, map_path
        case = ladder_row.row.case
        self.title.setText(heading(case))
        self.words.setText(case.idea)
        status, role = standing(ladder_row)
        if info is None and not case.is_reference:
            status += " Its source is not kept with a ladder, and not found here."
        self._say(status, role)
        able = info is not None and not ladder_row.failed and not ladder_row.refused
        self.use_button.setEnabled(able and not used)
        for button in (self.use_button, self.swap_button):
            button.setVisible(info is not None and not info.whole)
        self.swap_button.setEnabled(able)
        self.use_button.setText("In the model" if used else "Use in mode&l")
        self._offer(other)
        wrong = self._measurement.finding is not None
        compiles = (
            info is not None
            and not info.net
            and (Path(info.path).suffix == COMPILED or bool(info.case.language))
        )
        self._set_tabs(info is not None, info is not None and bool(self._against.count()), wrong, compiles)
        if wrong and other and self.tabs.currentWidget() in (self.source, self._beside):
            self.tabs.setCurrentWidget(self._pictures)
        self._fill()

    def show_problem(self, problem: KernelProblem) -> None:
        """Show a file of the user that is no rung."""
        if problem == self._shown:
            return
        self._shown, self._problem, self._info, self._measurement = problem, problem, None, None
        self.title.setText(Path(problem.path).name)
        self.words.setText("This file is not a rung yet; it is never executed.")
        self._say(problem.reason[:1].upper() + problem.reason[1:], "failed")
        self.use_button.hide()
        self.swap_button.hide()
        self._set_tabs(bool(problem.source), False, False)
        self._fill()

    def show_nothing(self, words: str) -> None:
        if self._shown == words:
            return
        self._shown, self._info, self._measurement, self._problem = words, None, None, None
        self.title.setText("")
        self.words.setText(words)
        self._say("", "muted")
        self.use_button.hide()
        self.swap_button.hide()
        self._set_tabs(False, False, False)

    def event(self, event: QEvent) -> bool:
        """While the reader has the whole page, Esc gives it back."""
        if isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape and self.whole.isChecked():
            if event.type() == QEvent.Type.KeyPress:
                self.whole.setChecked(False)
            event.accept()
            return True
        return super().event(event)

    # ------------------------------------------------------------------------------------------ the inside

    def _on_whole(self, on: bool) -> None:
        put_icon(self.whole, "back" if on else "whole", self._theming, "muted")
        self.whole_wanted.emit(on)

    def _step_button(self, step: int) -> QToolButton:
        words, keys = ("The rung before", "Alt+Left") if step < 0 else ("The next rung", "Alt+Right")
        button = tool_button("", lambda: self.step_wanted.emit(step), f"{words} ({keys})", name=words)
        button.setArrowType(Qt.ArrowType.LeftArrow if step < 0 else Qt.ArrowType.RightArrow)
        shortcut(self, keys, words, button.click)
        return button

    def _say(self, words: str, role: str) -> None:
        self.state.setText(words)
        self.state.setVisible(bool(words))
        set_role(self.state, role)

    def _set_tabs(self, source: bool, difference: bool, finding: bool, assembly: bool = False) -> None:
        for button in self.steps:
            button.setVisible(bool(self.title.text()))
        self.edit_button.setVisible(source)
        own = {
            self.source: source,
            self._beside: difference,
            self.assembly: assembly,
            self._pictures: finding,
            self.versions: self._info is not None and bool(self._saves),
        }
        alone = self.tabs.count() == len(own)
        self.tabs.setVisible(any(own.values()) or not alone)
        if alone and not any(own.values()):
            return
        before = self.tabs.currentWidget()
        # Tabs are disabled and not removed, so that the others do not move.
        for widget, there in own.items():
            self.tabs.setTabEnabled(self.tabs.indexOf(widget), there)
        wanted = before if own.get(before, True) else next((w for w, there in own.items() if there), before)
        self.tabs.setCurrentWidget(wanted)

    def _offer(self, other: bool) -> None:
        """Offer what the rung can be compared with: all others, and for a rung of the user its template.
        The first choice is the template, else the rung below."""
        info = self._info
        chosen = None if other else self._against.currentData()
        items: dict[str, str] = {}
        if info is not None:
            items = {TEMPLATE: TEMPLATE} if info.template else {}
            items |= {rung.path: rung.case.label for rung in self._rungs if rung.path != info.path}
            below = neighbour(info, self._rungs)
            if chosen not in items and below is not None and not info.template:
                chosen = below.path
        self._against.offer(items, chosen)

    def _fill(self, _: int = 0) -> None:
        """Fill the tab in front, if it does not show this rung yet."""
        tab, info = self.tabs.currentWidget(), self._info
        if tab is self.source:
            self._fill_source()
        elif tab is self._beside and info is not None:
            below = next((r for r in self._rungs if r.path == self._against.currentData()), None)
            if self._against.currentData() == TEMPLATE:
                other = ("The template", info.template)
            elif below is not None:
                other = (below.case.label, below.source)
            else:
                return
            if self._new(tab, (other, info)):
                self.diff.show_pair(*other, info.case.label, info.source, Path(info.path).suffix)
        elif tab is self.versions and info is not None:
            self.history.show_history(info, self._saves)
        elif tab is self.assembly and info is not None:
            if self._new(tab, (info.path, info.source, info.headers)):
                self.assembly.show_source(info.source, Path(info.path).suffix)
                self.assembly_wanted.emit(info)
        elif tab is self._pictures and self._measurement is not None:
            finding = self._measurement.finding
            if finding is not None and self._new(tab, (finding, self._map)):
                self.finding.show_finding(finding, self._map)

    def _fill_source(self) -> None:
        headers: tuple[str, ...] = ()
        if self._problem is not None:
            path, text, reason = self._problem.path, self._problem.source, self._problem.reason
        elif self._info is not None:
            path, text, headers = self._info.path, self._info.source, self._info.headers
            reason = self._measurement.reason if self._measurement is not None else ""
        else:
            return
        errors = error_lines(path, f"{path}: {reason}" if self._problem is not None else reason)
        if self._new(self.source, (path, text, tuple(errors.items()), headers)):
            name = Path(path)
            counted = self._problem is None and name.suffix == COMPILED
            self.source.show_source(text, name.name, name.suffix, errors, tuple(map(Path, headers)), counted)

    def _new(self, tab: QWidget, content: object) -> bool:
        if self._filled.get(tab) == content:
            return False
        self._filled[tab] = content
        return True

    def show_assembly(self, rung: str, answer: AssemblyAnswer) -> None:
        """Show what this rung is compiled to, if it is still the one shown."""
        if self._info is not None and self._info.case.rung == rung:
            self.assembly.show_answer(answer)

    def _on_counts(self) -> None:
        if self._info is not None and self._problem is None:
            self.counts_wanted.emit(self._info)

    def show_counts(self, rung: str, answer: CountsAnswer) -> None:
        """Show what the lines of this rung cost, if it is still the one shown."""
        if self._info is not None and self._info.case.rung == rung:
            self.source.show_counts(answer)

    def forget_assembly(self) -> None:
        """The sizes have changed, for which the same rung may be compiled to other code."""
        self._filled.pop(self.assembly, None)
        self.source.forget_counts()
        self._fill()

    def _on_edit(self) -> None:
        if self._problem is not None:
            path, errors = self._problem.path, error_lines(self._problem.path, self._problem.reason)
        elif self._info is not None:
            path, errors = self._info.path, {}
        else:
            return
        if self.tabs.currentWidget() is self.assembly:
            self.edit_wanted.emit(Path(path), self.assembly.source.at + 1)
        elif self.tabs.currentWidget() is self.source:
            self.edit_wanted.emit(self.source.files.currentData() or Path(path), self.source.code.at + 1)
        else:
            self.edit_wanted.emit(Path(path), next(iter(errors), 1))

    def _on_use(self) -> None:
        if self._info is not None:
            self.use_wanted.emit(self._info.case)

    def _on_swap(self) -> None:
        if self._info is not None:
            self.swap_wanted.emit(self._info.case)


def heading(case: RungCase) -> str:
    """The title of a rung, with its marks."""
    if case.is_reference:
        return "The reference" + (f", {case.precision}" if case.precision != "fp32" else "")
    marks = [
        words
        for words, on in (
            ("your own", case.user),
            (f"in {case.language}", case.language),
            ("beside the ladder", case.side),
            (case.precision, case.precision != "fp32"),
        )
        if on
    ]
    return case.label + (f" ({', '.join(marks)})" if marks else "")


def standing(ladder_row: LadderRow) -> tuple[str, str]:
    """A rung's result in words, and the role in which they are shown."""
    m = ladder_row.row.measurement
    if ladder_row.going is not None:
        if ladder_row.going.right:
            return "Right so far. It is timed together with the others, once all are checked.", "muted"
        return (
            f"{ladder_row.going.words.capitalize()} …" if ladder_row.going.words else "Waits its turn."
        ), "muted"
    if ladder_row.waits:
        return (
            f"Refused here: it {ladder_row.refused}." if ladder_row.refused else "Not measured yet."
        ), "muted"
    if m.disposition == "unsupported":
        return f"Refused here: it {m.reason}.", "muted"
    if m.disposition != "ok":
        word = "wrong" if m.finding is not None else WORDS.get(m.disposition, m.disposition)
        return f"{word[:1].upper()}{word[1:]}: {_without_folder(m.reason)}", "failed"
    parts = (
        [doubt.marked(units.duration(ladder_row.row.time.value), ladder_row.row.doubts)]
        if ladder_row.row.time
        else []
    )
    row = ladder_row.row
    if row.gain is not None and row.lower is not None:
        order = orders.order(row.gain_verdict, row.gain, "it", row.lower.case.label, SAME_BOUND, ends=False)
        parts.append(doubt.marked(order, row.gain_doubts))
    if row.speedup is not None:
        order = orders.order(row.verdict, row.speedup, "it", "the reference", SAME_BOUND, ends=False)
        parts.append(doubt.marked(order, row.speedup_doubts))
    if whole := story.whole(row, ladder_row.model, "the reference's"):
        parts.append(whole)
    doubts = ladder_row.row.all_doubts
    notes = list(dict.fromkeys([*m.notes, *doubts]))
    words = ", ".join(parts) + "." if parts else ""
    return " ".join([words, *(f"{note[:1].upper()}{note[1:]}." for note in notes)]), "muted"


def _without_folder(reason: str) -> str:
    """A reason that begins with a path, with only the file's name in its place."""
    match = re.match(r"(.*?[\\/])?([^\\/]+\.(?:cu|cuh|py):\d+: .*)", reason, re.DOTALL)
    return match[2] if match else reason


def neighbour(info: RungInfo, rungs: Sequence[RungInfo]) -> RungInfo | None:
    """The rung below in the ladder: of the same precision if there is one, else of fp32. For the first
    rung, the one after it."""
    case = info.case
    own = [r for r in rungs if not (r.case.side or r.case.user or r.case.yardstick) and r.path != info.path]
    lower = [r for r in own if r.case.number < case.number]
    same = [r for r in lower if r.case.precision == case.precision]
    plain = [r for r in lower if r.case.precision == "fp32"]
    candidates = same or plain or lower
    return candidates[-1] if candidates else None


def error_lines(path: str, reason: str) -> dict[int, str]:
    """The line of the rung's own file that a reason names (as in "…/90_mine.cu:12: …"), with the message.
    {} if it names none."""
    place = re.match(re.escape(path) + r":(\d+): (.*)", reason, re.DOTALL)
    if place:
        return {int(place[1]): place[2]}
    # TOML says where in the header: "… (at line 3, column 8)"; the header begins in the file's first line.
    header = re.search(r"\(at line (\d+), column \d+\)", reason)
    return {int(header[1]): reason.partition(": ")[2] or reason} if header else {}


# The least width and height of the panes in pixels for each way, the roomiest first; larger text takes more.
LEAST = {
    "rows": (740, 600),  # charts beside each other, and below them the table beside the reader
    "halves": (660, 330),  # charts behind tabs, the table below them, and the reader beside both
}
SMALLEST = QSize(300, 220)
BARS, LIMITS, RUNGS = "Bars", "Limits", "R&ungs"
SHARES = (5, 2)  # of the width: a bar a rung needs more of it than a lane a precision


class LadderPanes(QWidget):
    """Places the two charts, the table and the reader. `way`: "rows", "halves" or "tabs", by the room
    there is; with "tabs" all of them stand in the reader's tabs. For each way the user's sizes are
    kept."""

    def __init__(
        self,
        speed: ChartView,
        limits: ChartView,
        table: LadderTable,
        reader: LadderReader,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.way = ""
        self._whole = False  # the user gave the reader all the room
        self._speed, self._limits, self._table, self._reader = speed, limits, table, reader
        self._slots = {way: (_Slot(), _Slot()) for way in LEAST}  # of the table and the reader
        self._grid = ChartGrid([], least_height=190, shares=SHARES)
        across, down = HORIZONTAL, VERTICAL
        self._columns = splitter("ladder-columns", across, *self._slots["rows"], stretch=(1, 1))
        self._rows = splitter("ladder-rows", down, self._grid, self._columns, stretch=(1, 1))
        self._charts = tabbed({})
        in_table, in_reader = self._slots["halves"]
        self._left = splitter("ladder-left", down, self._charts, in_table, stretch=(1, 1))
        self._halves = splitter("ladder-halves", across, self._left, in_reader, stretch=(1, 1))
        self._alone = _Slot()
        self._stack = QStackedLayout(self)
        self._stack.setSizeConstraint(QStackedLayout.SizeConstraint.SetNoConstraint)  # of ways not in use
        for body in (self._rows, self._halves, self._alone):
            self._stack.addWidget(body)
        self.reset()
        self._arrange("rows")

    def reset(self) -> None:
        """Give every pane its first size."""
        self._rows.setSizes([440, 560])
        self._columns.setSizes([540, 460])
        self._left.setSizes([600, 400])
        self._halves.setSizes([480, 520])

    def set_whole(self, on: bool) -> None:
        """Give the reader all the room, or give every pane its place again."""
        self._whole = on
        if not on:
            self._arrange(self._fitting())
        elif self.way != "tabs":  # where it has it already
            self._alone.hold(self._reader)
            self._reader.set_compact(True)
            self._stack.setCurrentWidget(self._alone)

    def show_source(self) -> None:
        """Bring the source to the front, if it is behind a tab."""
        if self.way == "tabs":
            self._reader.tabs.setCurrentWidget(self._reader.source)

    def minimumSizeHint(self) -> QSize:
        return SMALLEST

    def sizeHint(self) -> QSize:
        return SMALLEST  # it takes what room there is; with more of its own the page would scroll

    def hasHeightForWidth(self) -> bool:
        """Never: the height that one way wants would give the page room for another way, whose height takes
        the room away again, without end."""
        return False

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if not self._whole and (way := self._fitting()) != self.way:
            self._arrange(way)

    # ------------------------------------------------------------------------------------------ the inside

    def _fitting(self) -> str:
        room = self.width(), self.height()
        fits = {way: all(map(operator.ge, room, map(scaled, least))) for way, least in LEAST.items()}
        return next((way for way, fit in fits.items() if fit), "tabs")

    def _arrange(self, way: str) -> None:
        self.way = way
        table, reader, charts = self._table, self._reader, (self._speed, self._limits)
        for chart in charts:
            chart.set_enlargeable(way == "rows")
        self._grid.hold(charts if way == "rows" else ())
        if way == "tabs":
            self._alone.hold(reader)
            for at, (pane, words) in enumerate(((table, RUNGS), (charts[0], BARS), (charts[1], LIMITS))):
                reader.tabs.insertTab(at, pane, words)
            reader.tabs.setCurrentWidget(table)
        else:
            in_table, in_reader = self._slots[way]
            in_table.hold(table)
            in_reader.hold(reader)
        if way == "halves":
            for chart, words in zip(charts, (BARS, LIMITS), strict=True):
                self._charts.addTab(chart, words)
            self._charts.setCurrentIndex(0)
        reader.set_compact(way == "tabs")
        self._stack.setCurrentWidget({"rows": self._rows, "halves": self._halves, "tabs": self._alone}[way])


class _Slot(QWidget):
    """A place for one widget, which may be moved to another place later."""

    def __init__(self) -> None:
        super().__init__()
        self._column = filled(QVBoxLayout(self), margins=(0, 0, 0, 0))

    def hold(self, widget: QWidget) -> None:
        self._column.addWidget(widget)
        widget.show()  # a tab that was not in front has hidden it
