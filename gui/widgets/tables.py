"""The table of a comparison's rows, also while it is measured."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QWidget

from bench.results.rows import Row
from bench.show import tables
from bench.show.table import Column, Table, to_markdown
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
        super().__init__("Measurements", parent)
        self._fitted = 0  # how many rows there were when the columns were fitted
        self._count = 0
        self._rows: list[Row] = []

    def show_rows(self, rows: Sequence[Row]) -> None:
        """Make these the rows; those of cases that are being measured come last."""
        if list(rows) != self._rows:  # a page asks for this with every chart that it draws
            self._rows = list(rows)
            self.show_table(Table(COLUMNS, rows))
            self._count = len(rows)

    def shown_rows(self) -> list[Row]:
        """The measured rows in the order they are sorted."""
        return [row for row in self.source.rows if not row.provisional]

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
