"""Compare: accuracy, time, breakdown and speed of a model over batch size, live, and the table of it all."""

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
from gui.base.scale import GAP, PAGE_MARGINS, TIGHT
from gui.pages.page import Page
from gui.sessions.run_state import is_in
from gui.widgets.combo import Combo
from gui.widgets.controls import push_button
from gui.widgets.labels import Elided, Label, as_tip, labelled

if TYPE_CHECKING:
    from gui.plots.chart import ChartView
    from gui.plots.legend import LegendEntry
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from PySide6.QtGui import QColor, QPalette

from bench.views.tables import comparison_tables as tables
from bench.views.tables.table import Column, Table, to_markdown
from bench.words import palette
from gui.widgets.table_view import TableView

MEASURING = "measuring…"
# In the window the interval and the reason have places of their own: the chart, the inspector, the problems;
# every figure that is to be doubted has its mark behind it, and why is its tooltip and the last column.
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
LAST = ("warnings", "reason")  # sentences, which would push the figures out of sight


def _outcome(column: Column[Row]) -> Column[Row]:
    """How a case ended, or that it goes on."""
    if column.name != "disposition":
        return column
    return replace(column, cell=lambda row: MEASURING if row.provisional else tables.words(row.measurement))


COLUMNS = tuple(
    _outcome(column)
    for column in sorted(tables.COLUMNS, key=lambda column: column.name in LAST)
    if column.name not in HIDDEN
)


class RowsTable(TableView):
    """`picked` carries the Case of the row the user went to."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Measurements", parent=parent)
        self._fitted = 0  # how many rows there were when the columns were fitted
        self._count = 0
        self._rows: list[Row] = []

    def show_rows(self, rows: Sequence[Row]) -> None:
        """Make these the rows; those of cases that are being measured come last."""
        if list(rows) != self._rows:  # a page asks for this with every chart that it draws
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
        """Not at each of many rows."""
        count = len(self.source.rows)
        if count == self._count or (8 <= count < 1.5 * self._fitted and count >= self._fitted):
            return False
        self._fitted = count
        return True

    def copied(self) -> Table[Row]:
        """Every column of what was measured."""
        return tables.table([row for row in self.chosen_rows() if not row.provisional])

    def markdown(self, table: Table[Row]) -> str:
        return to_markdown(tables.readable(table.rows))


ORDER = 10
# The suffix of a chart's name → what its place says while there is nothing to draw; in reading order. The
# first has a place only where it has something to show: answers that are all alike are a badge.
CHARTS = {
    "accuracy": "Accuracy appears here once a model with a data set was measured.",
    "op-time": "The time of a forward pass appears here over batch size.",
    "speed": "Speed-up against the reference and images per second appear here.",
    "breakdown": "Where the time of a pass goes appears here, one bar per batch size.",
}
# A chart of what is measured where it is asked for alone: its view is made when there is one.
ASKED_FOR = {"end-to-end": "Images a second from host to host appear here."}
# Why a ratio is not quite what two of the medians make.
PAIRED = "a speed-up compares times round by round, not the two medians"
PANELS = {"speed": 2, "breakdown": 4}  # that a chart has in a usual run
LEAST_HEIGHT = 430  # pixels of the page, below which it scrolls
BUDGET_S = 0.006  # after which the views that are left wait for the next turn
TABLE = "table"  # drawn in its turn, as one of the views
TOGETHER = "together"  # what the user chose in place of a precision; kept, as a precision is
_PRECISION = "compare/precision"
WHY = "So many lines in one picture are hard to tell apart: verdict, charts and table show one precision"


class ComparePage(Page):
    title = "Compare"
    inspects = "case"
    _busy = False
    ways = (
        ("run", "Run the comparison"),
        ("open-model", "Open a model of your own…"),
        ("open-sample", "See a run that was recorded"),
    )
    _wanted = ""  # precision that the user chose last, or TOGETHER
    _behind_table = False  # what is selected came into the table with what was drawn last

    def empty_text(self) -> str:
        return (
            "Which backend is faster, from which batch size on, and whether all answer alike appears here "
            "as it is measured (F5). Drop an .onnx file on the window to add your own."
        )

    def has_content(self) -> bool:
        return super().has_content() or bool(self.state.provisional())

    def build(self) -> QWidget:
        from gui.plots.chart import ChartGrid
        from gui.plots.legend import Legend
        from gui.widgets.board_view import BesideBoard, BoardView
        from gui.widgets.verdict_strip import VerdictStrip

        self._next = 0  # the view to begin with
        self.models = Combo()
        self.models.setMinimumContentsLength(24)
        self.models.currentIndexChanged.connect(self.invalidate)
        self._precision = Combo(chosen=self._on_precision)
        self._precision.setToolTip(as_tip(WHY))
        self.choice = labelled(self.models, "&Model", GAP)
        self.apart = labelled(self._precision, "Precisio&n", GAP)
        self.about = Elided(role="caption")
        self.retry = push_button(
            "",
            lambda: self.begin_wanted.emit("retry"),
            tip="Measure again what crashed or timed out; the rest stays as it is",
        )
        bar = as_row(self.choice, self.apart, (self.about, 1), self.retry, margins=(2, 0, 2, 2))
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
        said = BesideBoard(self.strip, self.board)
        body = as_column(said, bar, (split, 1), margins=PAGE_MARGINS, spacing=0)
        body.setMinimumHeight(LEAST_HEIGHT)
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
        said = self.state.verdicts(precision)
        self.strip.show_verdicts(said, model)
        self.board.show_board(self.state.board(model, precision) if model else None)
        self._tell_about(model)
        rows = [r for r in self.state.rows(model) if is_in(r.case, precision)] if model else []
        ends = f"{title(model)}-", f"-{precision}" * bool(precision)
        found = {
            chart.name.removeprefix(ends[0]).removesuffix(ends[1]): chart
            for chart in (self.state.charts(model, precision) if model else ())
        }
        # Said above, of each precision if not of all of them together.
        times = found.get("op-time")
        told = times.finding if times is not None and any(v.model == model for v in said) else ""
        self._place(found.get("accuracy"), ASKED_FOR.keys() & found.keys())
        self._legend.show_entries(shared(found[name] for name in self.views if name in found))
        ticks = tuple(float(b) for b in self.state.planned_batches(model)) if model else ()
        # A few views at a time, beginning where the last time ended: the user need not wait for all of them.
        end = time.perf_counter() + BUDGET_S
        names = [*self.views, TABLE]
        for done in range(len(names)):
            name = names[(self._next + done) % len(names)]
            if name == TABLE:
                soon = (m for m in self.state.provisional(model or None) if is_in(m.case, precision))
                self.table.show_rows([*rows, *map(expected_row, soon)])
                if self._behind_table:
                    self._behind_table = False
                    self.table.follow(self.state.case)
            else:
                self.views[name].told = told
                self.views[name].show_chart(found.get(name), ticks)
            if time.perf_counter() > end and done + 1 < len(names):
                self._next = (self._next + done + 1) % len(names)
                self.invalidate()
                return
        self._mark()

    def select(self) -> None:
        case = self.state.case
        if case is not None and case.model != self.model:
            self.models.setCurrentIndex(self.models.findData(case.model))
        if case is not None and not is_in(case, self.precision):
            apart = self.state.precisions(case.model)
            self._offer_precisions(case.model, next(each for each in apart if is_in(case, each)))
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

    def leave(self) -> bool:
        return self._body is not None and any(view.shrink() for view in self.views.values())

    def _add_view(self, name: str, empty: str) -> None:
        from gui.plots.chart import ChartView

        self.views[name] = view = ChartView(self.theming, empty)
        view.picked.connect(self._on_picked)
        view.menu_opened.connect(self.chart_menu)
        if name != "breakdown":  # whose bars are made of other things
            view.share(self._legend)

    def _place(self, answers: Chart | None, asked_for: set[str]) -> None:
        """The answers as a badge where all is alike, else as a chart; and charts of what was asked for."""
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
            held = placed | (CHARTS.keys() - {"accuracy"})
            self._grid.hold([view for name, view in self.views.items() if name in held])

    def _tell_about(self, model: str) -> None:
        """What was measured on what machine: of the run that is shown, while the form is for the next one."""
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
        self.about.setText(words + f" · {PAIRED}" * paired, words)

    @property
    def model(self) -> str:
        return self.models.currentData() or ""

    def _offer_models(self) -> None:
        models = self.state.models
        titles = {info.name: info.title for info in self.state.run.models}
        self.models.offer({model: _named(model, titles.get(model, "")) for model in models}, self.model)
        # There from the start where a second model will come: the charts below hold still.
        self.choice.setVisible(len({*models, *(case.model for case in self.state.run.cases)}) > 1)

    # ------------------------------------------------------------------------- one precision at a time

    @property
    def precision(self) -> str:
        """Of which alone lines and rows are shown; "": all in one."""
        shown = self._precision.currentData() or TOGETHER
        return "" if shown == TOGETHER else shown

    def _offer_precisions(self, model: str, show: str = "") -> None:
        """Those that the model is shown in one by one; of other models there is nothing to choose. show: the
        one to choose (else as it was, where the same are offered; or what the user chose last)."""
        box, apart = self._precision, self.state.precisions(model)
        items = {each: each for each in apart} | ({TOGETHER: "all in one"} if apart else {})
        before = box.currentData() if box.offered == list(items) else self._wanted
        box.offer(items, show or before)
        self.apart.setVisible(bool(apart))

    def _on_precision(self) -> None:
        self._wanted = self._precision.currentData()
        self.invalidate()

    def keep(self, settings: QSettings) -> None:
        settings.setValue(_PRECISION, self._wanted)

    def restore(self, settings: QSettings) -> None:
        self._wanted = str(settings.value(_PRECISION, ""))

    def _on_picked(self, contender: str, batch: float) -> None:
        """A point or bar was clicked: select its measurement, of several that with the most images."""
        row = best_row(self.state.rows(self.model), contender, batch)
        if row is not None:
            self.state.select(row.case)


def _named(model: str, shown: str) -> str:
    """A model in the list: by its name, and by its title where that is another."""
    name = title(model)
    return f"{name}: {shown}" if shown not in ("", name) else name


def shared(charts: Iterable[Chart]) -> tuple[LegendEntry, ...]:
    """The lines of all of them, each once."""
    from gui.plots.legend import entries

    found = {entry.key: entry for chart in charts if not chart.categories for entry in entries(chart)}
    return tuple(found.values())


def row_label(chart: Chart | None, case: Case) -> str:
    """What the chart calls the line or panel that a case stands in; the inverse of `best_row`."""
    who, images = label(case.backend, case.precision), f", {case.images:,} images"
    labels = {s.label for panel in chart.panels for s in panel.series} if chart is not None else set()
    return who + images if who + images in labels else who


def best_row(rows: Sequence[Row], contender: str, batch: float) -> Row | None:
    """The row a chart's point stands for; a label may end in ", N images"."""
    label, _, images = contender.partition(", ")
    found = [r for r in rows if r.contender == label and r.case.batch == batch]
    if images:
        count = images.removesuffix(" images").replace(",", "")
        found = [r for r in found if str(r.case.images) == count] or found
    return max(found, key=lambda r: r.case.images, default=None)


def expected_row(message: Provisional) -> Row:
    """The row of a case that is being measured."""
    case = message.case
    empty = Measurement(case=case, disposition="ok")
    return Row(empty, title(case.model), median_ns=message.median_ns, provisional=True)


PAGE = ComparePage
