"""Compare: accuracy, time, breakdown and speed of a model over batch size, while it is measured; and a
table."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QSettings, Qt
from PySide6.QtWidgets import QHBoxLayout, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from bench.results.messages import Provisional
from bench.results.records import Case, Measurement
from bench.results.rows import Row, label, title
from bench.views.charts.definitions import Chart
from bench.views.remedies import counted
from bench.views.sentences.findings import badge
from bench.views.sentences.footer import processors
from gui.base.boxes import VERTICAL, as_column, filled, splitter
from gui.base.theme import GAP, PAGE_MARGINS, TIGHT
from gui.pages.page import Page
from gui.sessions.comparison_session import is_in
from gui.widgets.controls import Combo, Label, as_tip, labelled, push_button

if TYPE_CHECKING:
    from gui.plots.chart import ChartView, LegendEntry
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from PySide6.QtGui import QColor, QPainter, QPalette

from bench.views.tables import comparison_tables as tables
from bench.views.tables.table import Column, Table, to_markdown
from bench.words import palette
from gui.widgets.table_view import TableView

MEASURING = "measuring…"
STAGES = {  # what is done with a case that is being measured
    "tune": "tuning",
    "prepare": "preparing",
    "time": "timing",
    "check": "checking",
    "layers": "layers",
    "end_to_end": "end to end",
}
# These columns are not shown: their content is in the chart, the inspector, the list of problems or, for the
# verdict, in the speed-up. A figure in doubt has a mark; the reason is its tooltip and the last column.
HIDDEN = {
    "model",
    "doubtful",
    "images",
    "low_s",
    "high_s",
    "reference",
    "speedup_low",
    "speedup_high",
    "verdict",
    "error_bound",
    "stopped_by",
}
# Words about the case come first, then figures; sentences come last, or they push the figures out of sight.
FIRST, LAST = ("backend", "precision", "disposition"), ("undecided", "warnings", "reason")


def _place(column: Column[Row]) -> int:
    return (column.name in LAST) - (column.name in FIRST)


COLUMNS = tuple(column for column in sorted(tables.COLUMNS, key=_place) if column.name not in HIDDEN)
OUTCOME = next(place for place, column in enumerate(COLUMNS) if column.name == "disposition")


class PartDone(QStyledItemDelegate):
    """Draws below the text how much is done of a case that is being measured."""

    HIGH = 3  # pixels

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Any) -> None:
        super().paint(painter, option, index)
        table = self.parent()
        part = table.part_of(index.row()) if isinstance(table, RowsTable) else None
        if part is not None:
            room = option.rect.adjusted(0, option.rect.height() - self.HIGH, 0, 0)
            painter.fillRect(room, option.palette.color(QPalette.ColorRole.Mid))
            room.setWidth(round(part * room.width()))
            painter.fillRect(room, option.palette.color(QPalette.ColorRole.Accent))


class RowsTable(TableView):
    """The table of measurements. `picked` carries the Case of the row that the user went to."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Measurements", parent=parent)
        self._stage: Callable[[Case], tuple[str, float | None]] = lambda case: ("", None)
        outcome = replace(COLUMNS[OUTCOME], cell=self._outcome)
        self._columns = (*COLUMNS[:OUTCOME], outcome, *COLUMNS[OUTCOME + 1 :])
        self._delegate = PartDone(self)
        self.setItemDelegateForColumn(OUTCOME, self._delegate)
        self._fitted = 0  # how many rows there were when the columns were fitted
        self._count = 0
        self._rows: list[Row] = []

    def _outcome(self, row: Row) -> str:
        """The result, or what is being done with the case."""
        if not row.provisional:
            return tables.words(row.measurement)
        stage, fraction = self._stage(row.case)
        return STAGES.get(stage, MEASURING) + (f" {fraction:.0%}".replace("%", " %") if fraction else "")

    def part_of(self, place: int) -> float | None:
        """How much is done of what is being done with the case in this line; None where nothing says."""
        row = self.source.rows[place]
        return self._stage(row.case)[1] if row.provisional else None

    def show_rows(self, rows: Sequence[Row], stage: Callable[[Case], tuple[str, float | None]]) -> None:
        """Show these rows. Rows of cases that are being measured come last. stage: what is done with one, and
        how much of it."""
        self._stage = stage
        if list(rows) != self._rows:  # the page calls this with every chart that it draws
            self._rows = list(rows)
            self.show_table(Table(self._columns, rows))
            self._count = len(rows)
            self.setMinimumHeight(self._height_of(LEAST_ROWS if self.window().height() > LOW else 2))

    def key(self, row: Row) -> Hashable:
        return row.case, row.provisional

    def target(self, row: Row) -> Any:
        return row.case

    def tip(self, row: Row, column: Column[Row]) -> str:
        return row.measurement.reason or super().tip(row, column)

    def ink(self, row: Row, column: Column[Row]) -> QColor | None:
        return QPalette().color(QPalette.ColorRole.PlaceholderText) if row.provisional else None

    def swatch(self, row: Row, column: Column[Row]) -> QColor | None:
        return QColor(palette.backend(row.case.backend)) if column.name == "backend" else None

    def fits(self) -> bool:
        """Whether to fit the columns: not for each single new row."""
        count = len(self.source.rows)
        if count == self._count or (8 <= count < 1.5 * self._fitted and count >= self._fitted):
            return False
        self._fitted = count
        return True

    def _height_of(self, rows: int) -> int:
        """The height in pixels in which so many rows are visible."""
        head, line = self.horizontalHeader().height(), self.verticalHeader().defaultSectionSize()
        return head + rows * line + self.horizontalScrollBar().sizeHint().height() + 2 * self.frameWidth()

    def copied(self) -> Table[Row]:
        """All columns of the rows that are measured."""
        return tables.table([row for row in self.chosen_rows() if not row.provisional])

    def markdown(self, table: Table[Row]) -> str:
        return to_markdown(tables.readable(table.rows))


ORDER = 10
# The suffix of a chart's name → what its place says while it is empty; in reading order. The first chart is
# shown only if the answers differ; else a badge says that all are alike.
CHARTS = {
    "accuracy": "Accuracy appears here once a model with a data set was measured.",
    "op-time": "The time of a forward pass appears here over batch size.",
    "speed": "Speed-up against the reference and images per second appear here.",
    "breakdown": "Where the time of a pass goes appears here, one bar per batch size.",
}
# Charts that exist only if the user asked for the measurement. Their views are made when there is one.
ASKED_FOR = {"end-to-end": "Images a second from host to host appear here."}
# Why a speed-up is not exactly the ratio of the two medians.
PAIRED = "a speed-up compares times round by round, not the two medians"
PANELS = {"speed": 2, "breakdown": 4}  # the number of panels that a chart usually has
LEAST_ROWS, LOW = 5, 700  # of the table, which are visible; pixels of a window that has less room
LEAST_HEIGHT = 520  # pixels of the page, below which it scrolls
BUDGET_S = 0.006  # after that time the remaining views wait for the next turn
CARDS, TABLE = "cards", "table"  # which are drawn in turn with the charts
TOGETHER = "together"  # the choice of all precisions in one picture
_PRECISION = "compare/precision"
WHY = "So many lines in one picture are hard to tell apart: verdict, charts and table show one precision"


class ComparePage(Page):
    """The page of a comparison."""

    title = "Compare"
    inspects = "case"
    _busy = False
    ways = (
        ("run", "Run the comparison"),
        ("open-model", "Open a model of your own…"),
        ("open-sample", "See a run that was recorded"),
    )
    _model = ""  # that the user chose last
    _cancelled = False  # how the last run that was measured here ended
    _newcomer = False  # until it is known which runs there are
    _wanted = ""  # precision that the user chose last, or TOGETHER
    _behind_table = False  # the table must go to the selected row when it is drawn next

    def hold_recent(self, recent: QWidget) -> None:
        """Show this below the ways while there is no run. `welcome` says whether it holds anything."""
        self._empty.hold(recent)

    def welcome(self, newcomer: bool) -> None:
        """Say whether the user is new here, and needs to be told what this page is for."""
        self._newcomer = newcomer
        self.invalidate()

    def empty_text(self) -> str:
        if not self._newcomer:
            return "F5 runs what the form describes. Drop an .onnx file on the window to add your own."
        return (
            "A comparison (F5) shows here whether all backends give the right answers, which of them is "
            "faster at which batch size, and what holds it back. Drop an .onnx file on the window to add "
            "your own model."
        )

    def has_content(self) -> bool:
        known = super().has_content() or bool(self.state.provisional() or self.state.rows())
        return known or (self._busy and bool(self.state.run.cases))  # places for what is to come

    def build(self) -> QWidget:
        from gui.plots.chart import ChartGrid, Legend
        from gui.widgets.cards import CardsView

        self._next = 0  # the view to begin with
        self.state.replaced.connect(self._on_replaced)
        self.state.moved.connect(self._on_moved)
        self._precision = Combo(chosen=self._on_precision)
        self._precision.setToolTip(as_tip(WHY))
        self.precision_choice = labelled(self._precision, "Precisio&n", GAP)
        self.stopped = Label(role="muted")
        self.resume = push_button(
            "Res&ume",
            lambda: self.begin_wanted.emit("resume"),
            tip="Measure the cases that this run lacks",
            role="small",
        )
        self.retry = push_button(
            "",
            lambda: self.begin_wanted.emit("retry"),
            tip="Measure again what crashed or timed out; the rest stays as it is",
            role="small",
        )
        self.doubts = push_button(
            "",
            lambda: self.begin_wanted.emit("problems"),
            tip="! has a reason to be doubted, ? is not decided; a click says why, and what mends it (F9)",
            role="doubts",
        )
        self.cards = CardsView(self.theming)
        self.cards.picked.connect(self.state.select)
        self.cards.pointed.connect(self._on_pointed)
        self.cards.model_wanted.connect(self._on_model_wanted)
        self.below = Label(role="heading")  # whose charts and table these are
        self._legend = Legend(self.theming)
        self.views: dict[str, ChartView] = {}
        for name, empty in CHARTS.items():
            self._add_view(name, empty)
        self._grid = ChartGrid([view for name, view in self.views.items() if name != "accuracy"])
        self._placed: set[str] = set()
        beside = (self.precision_choice, self.stopped, self.resume, self.retry, self.doubts)
        above = filled(
            QHBoxLayout(),
            (self.below, 0, Qt.AlignmentFlag.AlignVCenter),
            (self._legend, 1),
            *((each, 0, Qt.AlignmentFlag.AlignVCenter) for each in beside),
            spacing=GAP,
        )
        charts = as_column(above, (self._grid, 1), spacing=TIGHT)
        self.table = RowsTable()
        self.table.picked.connect(self.state.select)
        split = splitter("compare-rows", VERTICAL, charts, self.table, sizes=[700, 170], stretch=(4, 1))
        split.setCollapsible(0, False)
        body = as_column(self.cards, (split, 1), margins=PAGE_MARGINS, spacing=TIGHT)
        body.setMinimumHeight(LEAST_HEIGHT)
        self.state.replaced.connect(self._clear)
        return body

    def ahead(self) -> Sequence[Callable[[], object]]:
        return [
            functools.partial(view.make_ready, bars=name == "breakdown")
            for name, view in self.views.items()
            for _ in range(PANELS.get(name, 1))
        ]

    def refresh(self) -> None:
        model = self.model
        self._offer_precisions(model)
        precision = self.precision
        self._tell_about(model)
        rows = [r for r in self.state.rows(model) if is_in(r.case, precision)] if model else []
        affixes = f"{title(model)}-", f"-{precision}" * bool(precision)
        charts = {
            chart.name.removeprefix(affixes[0]).removesuffix(affixes[1]): chart
            for chart in (self.state.charts(model, precision) if model else ())
        }
        # The cards above say this already.
        above = {charts[name].finding for name in ("op-time", "breakdown") if name in charts}
        self._place(charts.get("accuracy"), ASKED_FOR.keys() & charts.keys())
        self._legend.show_entries(shared(charts[name] for name in self.views if name in charts))
        ticks = tuple(float(b) for b in self.state.planned_batches(model)) if model else ()
        # A few views at a time, starting where the last call stopped: the user does not wait for all of them.
        end = time.perf_counter() + BUDGET_S
        names = [CARDS, *self.views, TABLE]
        for turn in range(len(names)):
            name = names[(self._next + turn) % len(names)]
            if name == CARDS:
                self.cards.show_cards(self.state.cards(precision), model, precision)
            elif name == TABLE:
                soon = (m for m in self.state.provisional(model or None) if is_in(m.case, precision))
                begun = (case for case in self.state.begun(model) if is_in(case, precision))
                to_come = [*map(expected_row, soon), *map(empty_row, begun)]
                self.table.show_rows([*rows, *to_come], self.state.stage)
                if self._behind_table:
                    self._behind_table = False
                    self.table.follow(self.state.case)
            elif name in self._placed or name != "accuracy":  # what nobody sees is not drawn
                chart = charts.get(name)
                known = chart is not None and chart.finding in above
                self.views[name].stated_above = chart.finding if chart is not None and known else ""
                self.views[name].show_chart(chart, ticks)
            if time.perf_counter() > end and turn + 1 < len(names):
                self._next = (self._next + turn + 1) % len(names)
                self.invalidate()
                return
        self._mark()

    def select(self) -> None:
        case = self.state.case
        if case is not None and case.model != self.model:
            self.choose(case.model)
        if case is not None and not is_in(case, self.precision):
            precisions = self.state.precisions(case.model)
            self._offer_precisions(case.model, next(each for each in precisions if is_in(case, each)))
            self._behind_table = True
            self.invalidate()
        self.table.follow(case)
        self._mark()

    def set_busy(self, busy: bool, cancelled: bool = False) -> None:
        super().set_busy(busy, cancelled)
        self._busy, self._cancelled = busy, cancelled
        self.invalidate()

    def _on_moved(self) -> None:
        self.table.viewport().update()

    def _on_replaced(self) -> None:
        self._cancelled = False

    def _mark(self) -> None:
        """Mark the selected case on the scoreboard and in every chart."""
        case = self.state.case
        self.cards.point_at(case, label(case.backend, case.precision) if case is not None else "")
        for view in self.views.values():
            if case is None:
                view.select("", None)
            else:
                view.select(row_label(view.chart, case), float(case.batch))

    def _clear(self) -> None:
        """Another run is loaded: rows of the one before do not stand beside its charts meanwhile."""
        self.table.show_rows([], self.state.stage)
        self._next = 0

    def leave(self) -> bool:
        return self._body is not None and any(view.shrink() for view in self.views.values())

    def _add_view(self, name: str, empty: str) -> None:
        from gui.plots.chart import ChartView

        self.views[name] = view = ChartView(self.theming, empty)
        view.picked.connect(self._on_picked)
        view.menu_opened.connect(self.chart_menu)
        if name != "breakdown":  # its bars have other legend entries
            view.share(self._legend)

    def _place(self, answers: Chart | None, asked_for: set[str]) -> None:
        """Show the accuracies as a chart if they are not all alike (else the card says them); and add the
        charts in `asked_for`."""
        words = badge(answers) if answers is not None else ""
        for name in sorted(asked_for - self.views.keys()):
            self._add_view(name, ASKED_FOR[name])
        placed = asked_for | ({"accuracy"} if answers is not None and not words else set())
        if placed != self._placed:
            self._placed = placed
            names = placed | (CHARTS.keys() - {"accuracy"})
            self._grid.hold([view for name, view in self.views.items() if name in names])

    def _tell_about(self, model: str) -> None:
        """Say which model it is, on which machine it was measured, how far the run has come, and what is to
        be doubted of it."""
        cases = [m.case for m in self.state.measurements if m.case.model == model]
        machine = processors(self.state.run, any(case.backend.endswith("-cuda") for case in cases))
        paired = any(row.speedup is not None for row in self.state.rows(model)) if model else False
        self.below.setText(f"↓ {title(model)}")
        self.below.setVisible(len(self.state.cards(self.precision)) > 1)
        self.cards.where.setText(shortened(machine.partition(" and ")[0]) if cases else "")
        self.cards.where.setToolTip(
            as_tip(f"Measured on {machine}" + f"; {PAIRED}" * paired if cases else "")
        )
        lost, missing, planned = self.state.lost, self.state.missing, len(self.state.run.cases)
        stopped = f"{'cancelled at ' if self._cancelled else ''}{planned - missing:,} of {planned:,}"
        if waiting := self.state.waiting:
            count = len(self.state.measurements)
            stopped = f"Loading: {count - waiting:,} of {count:,} cases"
        self.stopped.setText(stopped)
        self.stopped.setVisible((missing > 0 or waiting > 0) and not self._busy)
        self.resume.setVisible(missing > 0 and not self._busy and self.state.folder is not None)
        self.retry.setText(f"Retry {lost:,} that failed")
        self.retry.setVisible(lost > 0)
        self.retry.setEnabled(not self._busy)
        boards = (card.verdict.board for card in self.state.cards(self.precision))
        doubts = counted(boards, self.state.doubts())
        self.doubts.setText(doubts)
        self.doubts.setVisible(bool(doubts))

    @property
    def model(self) -> str:
        """The model whose charts are shown: the one that was chosen last, as long as it is in the run."""
        models = self.state.models
        planned = (case.model for case in self.state.run.cases)
        return self._model if self._model in models else next(iter(models), next(planned, ""))

    def choose(self, model: str, precision: str = "") -> None:
        """Show the charts of this model, in this precision if it is shown in one at a time."""
        self._model = model
        if precision:
            self._wanted = precision
            self._offer_precisions(model, precision)
        self.invalidate()

    def _on_model_wanted(self, model: str) -> None:
        self.choose(model)
        self.state.model_chosen.emit(model)

    # ------------------------------------------------------------------------- one precision at a time

    @property
    def precision(self) -> str:
        """The precision whose lines and rows are shown, "" for all."""
        choice = self._precision.currentData() or TOGETHER
        return "" if choice == TOGETHER else choice

    def _offer_precisions(self, model: str, show: str = "") -> None:
        """Offer the precisions in which the model is shown one at a time. Most models have no such choice.
        show: the precision to choose; "" keeps the choice, or takes the user's last one."""
        box, precisions = self._precision, self.state.precisions(model)
        items = {each: each for each in precisions} | ({TOGETHER: "all in one"} if precisions else {})
        before = box.currentData() if box.offered == list(items) else self._wanted
        box.offer(items, show or before)
        self.precision_choice.setVisible(bool(precisions))

    def _on_precision(self) -> None:
        self._wanted = self._precision.currentData()
        self.invalidate()

    def keep(self, settings: QSettings) -> None:
        settings.setValue(_PRECISION, self._wanted)

    def restore(self, settings: QSettings) -> None:
        self._wanted = str(settings.value(_PRECISION, ""))

    def _on_picked(self, contender: str, batch: float) -> None:
        """Select the measurement of a point or bar that was clicked; of several the one with most images."""
        self._on_pointed(self.model, contender, batch)

    def _on_pointed(self, model: str, contender: str, batch: float) -> None:
        row = best_row(self.state.rows(model), contender, batch)
        if row is not None:
            self.state.select(row.case)


# Of what vendors call a machine, what tells it from no other.
_NOISE = re.compile(
    r"\((?:R|TM)\)|\b(?:NVIDIA|GeForce|Processor|CPU|\d+-Core)\b|\b\d+GB\b|\bHBM\w*|@.*|\(\d+ cores?\)",
    re.IGNORECASE,
)


def shortened(machine: str) -> str:
    """A processor's name in a few letters: "H100", "Intel Xeon"."""
    return " ".join(_NOISE.sub(" ", machine).split()) or machine


def shared(charts: Iterable[Chart]) -> tuple[LegendEntry, ...]:
    """The legend entries of several charts, each once."""
    from gui.plots.chart import entries

    lines = {entry.key: entry for chart in charts if not chart.categories for entry in entries(chart)}
    return tuple(lines.values())


def row_label(chart: Chart | None, case: Case) -> str:
    """The label of a case's line or panel in a chart; the inverse of `best_row`."""
    who, images = label(case.backend, case.precision), f", {case.images:,} images"
    labels = {s.label for panel in chart.panels for s in panel.series} if chart is not None else set()
    return who + images if who + images in labels else who


def best_row(rows: Sequence[Row], contender: str, batch: float) -> Row | None:
    """The row of a point in a chart. A label may end in ", N images"."""
    label, _, images = contender.partition(", ")
    fitting = [r for r in rows if r.contender == label and r.case.batch == batch]
    if images:
        count = images.removesuffix(" images").replace(",", "")
        fitting = [r for r in fitting if str(r.case.images) == count] or fitting
    return max(fitting, key=lambda r: r.case.images, default=None)


def expected_row(message: Provisional) -> Row:
    """The row of a case that is being measured."""
    return replace(empty_row(message.case), median_ns=message.median_ns)


def empty_row(case: Case) -> Row:
    """The row of a case that has just begun."""
    return Row(Measurement(case=case, disposition="ok"), title(case.model), provisional=True)


PAGE = ComparePage
