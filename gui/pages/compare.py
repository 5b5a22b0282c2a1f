"""Compare: accuracy, time, breakdown and speed of a model over batch size, while it is measured; and a
table."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QSettings, Qt
from PySide6.QtWidgets import QHBoxLayout, QWidget

from bench.results.messages import Provisional
from bench.results.records import Case, Measurement
from bench.results.rows import Row, label, title
from bench.views.charts.definitions import Chart
from bench.views.sentences.findings import badge
from bench.views.sentences.footer import processors
from bench.words.option import numbers_text
from gui.base.boxes import VERTICAL, as_column, as_row, filled, splitter
from gui.base.theme import GAP, PAGE_MARGINS, TIGHT
from gui.pages.page import Page
from gui.sessions.comparison_session import is_in
from gui.widgets.controls import Combo, Elided, Label, as_tip, labelled, push_button

if TYPE_CHECKING:
    from gui.plots.chart import ChartView, LegendEntry
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from PySide6.QtGui import QColor, QPalette

from bench.views.tables import comparison_tables as tables
from bench.views.tables.table import Column, Table, to_markdown
from bench.words import palette
from gui.widgets.table_view import TableView

MEASURING = "measuring…"
# These columns are not shown: their content is in the chart, the inspector or the list of problems. A figure
# in doubt has a mark; the reason is its tooltip and the last column.
HIDDEN = {
    "model",
    "doubtful",
    "images",
    "low_s",
    "high_s",
    "reference",
    "speedup_low",
    "speedup_high",
    "error_bound",
    "stopped_by",
}
LAST = ("warnings", "reason")  # last, because sentences would push the figures out of sight


def _outcome(column: Column[Row]) -> Column[Row]:
    """The column of results, which also says that a case is being measured."""
    if column.name != "disposition":
        return column
    return replace(column, cell=lambda row: MEASURING if row.provisional else tables.words(row.measurement))


COLUMNS = tuple(
    _outcome(column)
    for column in sorted(tables.COLUMNS, key=lambda column: column.name in LAST)
    if column.name not in HIDDEN
)


class RowsTable(TableView):
    """The table of measurements. `picked` carries the Case of the row that the user went to."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Measurements", parent=parent)
        self._fitted = 0  # how many rows there were when the columns were fitted
        self._count = 0
        self._rows: list[Row] = []

    def show_rows(self, rows: Sequence[Row]) -> None:
        """Show these rows. Rows of cases that are being measured come last."""
        if list(rows) != self._rows:  # the page calls this with every chart that it draws
            self._rows = list(rows)
            self.show_table(Table(COLUMNS, rows))
            self._count = len(rows)

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
LEAST_HEIGHT = 430  # pixels of the page, below which it scrolls
BUDGET_S = 0.006  # after that time the remaining views wait for the next turn
TABLE = "table"  # the table, which is drawn in turn with the charts
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
    _newcomer = True
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
            "Which backend is faster, from which batch size on, and whether all answer alike appears here "
            "as it is measured (F5). Drop an .onnx file on the window to add your own."
        )

    def has_content(self) -> bool:
        return super().has_content() or bool(self.state.provisional())

    def build(self) -> QWidget:
        from gui.plots.chart import ChartGrid, Legend
        from gui.widgets.verdict_strip import BesideBoard, BoardView, VerdictStrip

        self._next = 0  # the view to begin with
        self.models = Combo()
        self.models.setMinimumContentsLength(24)
        self.models.currentIndexChanged.connect(self.invalidate)
        self.models.activated.connect(lambda _: self.state.model_chosen.emit(self.model))
        self._precision = Combo(chosen=self._on_precision)
        self._precision.setToolTip(as_tip(WHY))
        self.model_choice = labelled(self.models, "&Model", GAP)
        self.precision_choice = labelled(self._precision, "Precisio&n", GAP)
        self.about = Elided(role="caption")
        self.retry = push_button(
            "",
            lambda: self.begin_wanted.emit("retry"),
            tip="Measure again what crashed or timed out; the rest stays as it is",
        )
        bar = as_row(
            self.model_choice, self.precision_choice, (self.about, 1), self.retry, margins=(2, 0, 2, 2)
        )
        self.strip = VerdictStrip(self.theming)
        self.strip.picked.connect(self.state.select)
        self.board = BoardView(self.theming)
        self.board.pointed.connect(self._on_picked)
        self._legend = Legend(self.theming)
        self.views: dict[str, ChartView] = {}
        for name, empty in CHARTS.items():
            self._add_view(name, empty)
        self.badge = Label(role="badge", selectable=True)
        self.badge.setProperty("good", True)
        self._grid = ChartGrid([view for name, view in self.views.items() if name != "accuracy"])
        self._placed: set[str] = set()
        above = filled(
            QHBoxLayout(), (self._legend, 1), (self.badge, 0, Qt.AlignmentFlag.AlignTop), spacing=GAP
        )
        charts = as_column(above, (self._grid, 1), spacing=TIGHT)
        self.table = RowsTable()
        self.table.picked.connect(self.state.select)
        split = splitter("compare-rows", VERTICAL, charts, self.table, sizes=[700, 170], stretch=(4, 1))
        split.setCollapsible(0, False)
        head = BesideBoard(self.strip, self.board)
        body = as_column(head, bar, (split, 1), margins=PAGE_MARGINS, spacing=0)
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
        self._offer_models()
        model = self.model
        self._offer_precisions(model)
        precision = self.precision
        verdicts = self.state.verdicts(precision)
        self.strip.show_verdicts(verdicts, model)
        self.board.show_board(self.state.board(model, precision) if model else None)
        self._tell_about(model)
        rows = [r for r in self.state.rows(model) if is_in(r.case, precision)] if model else []
        affixes = f"{title(model)}-", f"-{precision}" * bool(precision)
        charts = {
            chart.name.removeprefix(affixes[0]).removesuffix(affixes[1]): chart
            for chart in (self.state.charts(model, precision) if model else ())
        }
        # The verdicts above say this already.
        times = charts.get("op-time")
        above = times.finding if times is not None and any(v.model == model for v in verdicts) else ""
        self._place(charts.get("accuracy"), ASKED_FOR.keys() & charts.keys())
        self._legend.show_entries(shared(charts[name] for name in self.views if name in charts))
        ticks = tuple(float(b) for b in self.state.planned_batches(model)) if model else ()
        # A few views at a time, starting where the last call stopped: the user does not wait for all of them.
        end = time.perf_counter() + BUDGET_S
        names = [*self.views, TABLE]
        for turn in range(len(names)):
            name = names[(self._next + turn) % len(names)]
            if name == TABLE:
                soon = (m for m in self.state.provisional(model or None) if is_in(m.case, precision))
                self.table.show_rows([*rows, *map(expected_row, soon)])
                if self._behind_table:
                    self._behind_table = False
                    self.table.follow(self.state.case)
            else:
                self.views[name].stated_above = above
                self.views[name].show_chart(charts.get(name), ticks)
            if time.perf_counter() > end and turn + 1 < len(names):
                self._next = (self._next + turn + 1) % len(names)
                self.invalidate()
                return
        self._mark()

    def select(self) -> None:
        case = self.state.case
        if case is not None and case.model != self.model:
            self.models.setCurrentIndex(self.models.findData(case.model))
        if case is not None and not is_in(case, self.precision):
            precisions = self.state.precisions(case.model)
            self._offer_precisions(case.model, next(each for each in precisions if is_in(case, each)))
            self._behind_table = True
            self.invalidate()
        self.table.follow(case)
        self._mark()

    def set_busy(self, busy: bool) -> None:
        super().set_busy(busy)
        self._busy = busy
        self.invalidate()

    def _mark(self) -> None:
        """Mark the selected case on the scoreboard and in every chart."""
        case = self.state.case
        if case is not None:
            self.board.point_at(label(case.backend, case.precision), case.batch)
        for view in self.views.values():
            if case is None:
                view.select("", None)
            else:
                view.select(row_label(view.chart, case), float(case.batch))

    def _clear(self) -> None:
        """Another run is loaded: rows of the one before do not stand beside its charts meanwhile."""
        self.table.show_rows([])
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
        """Show the accuracies as a badge if all are alike, else as a chart; and add the charts in
        `asked_for`."""
        words = badge(answers) if answers is not None else ""
        self.badge.setVisible(bool(words))
        self.badge.setText(words)
        self.badge.setToolTip(as_tip(answers.finding) if answers is not None else "")
        for name in sorted(asked_for - self.views.keys()):
            self._add_view(name, ASKED_FOR[name])
        placed = asked_for | ({"accuracy"} if answers is not None and not words else set())
        if placed != self._placed:
            self._placed = placed
            self.strip.give(roomy=not placed)  # more charts stand in two rows
            names = placed | (CHARTS.keys() - {"accuracy"})
            self._grid.hold([view for name, view in self.views.items() if name in names])

    def _tell_about(self, model: str) -> None:
        """Say what was measured on which machine. This is about the run shown; the form is for the next
        one."""
        cases = [m.case for m in self.state.measurements if m.case.model == model]
        batches = numbers_text(self.state.planned_batches(model)) if model else ""
        parts = [
            processors(self.state.run, any(case.backend.endswith("-cuda") for case in cases)),
            ", ".join(dict.fromkeys(case.precision for case in cases)),
            f"batch {batches}" if batches else "",
        ]
        words = "Measured on " + " · ".join(filter(None, parts)) if cases else ""
        lost = self.state.lost
        self.retry.setText(f"Retry {lost:,} that failed")
        self.retry.setVisible(lost > 0)
        self.retry.setEnabled(not self._busy)
        paired = any(row.speedup is not None for row in self.state.rows(model)) if model else False
        if (waiting := self.state.waiting) and not self._busy:
            count = len(self.state.measurements)
            words, paired = f"Loading: {count - waiting:,} of {count:,} cases", False
        self.about.setText(words + f" · {PAIRED}" * paired, words)

    @property
    def model(self) -> str:
        return self.models.currentData() or ""

    def _offer_models(self) -> None:
        models = self.state.models
        titles = {info.name: info.title for info in self.state.run.models}
        self.models.offer({model: _named(model, titles.get(model, "")) for model in models}, self.model)
        # Visible from the start if a second model will come, so that the charts below do not move.
        self.model_choice.setVisible(len({*models, *(case.model for case in self.state.run.cases)}) > 1)

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
        row = best_row(self.state.rows(self.model), contender, batch)
        if row is not None:
            self.state.select(row.case)


def _named(model: str, full: str) -> str:
    """A model in the list: its name, and its title if that is different."""
    name = title(model)
    return f"{name}: {full}" if full not in ("", name) else name


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
    case = message.case
    empty = Measurement(case=case, disposition="ok")
    return Row(empty, title(case.model), median_ns=message.median_ns, provisional=True)


PAGE = ComparePage
