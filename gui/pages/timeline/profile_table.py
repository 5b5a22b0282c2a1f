"""A table of a profile (bench.profile.show.tables), in which the lines that take 90 % of the time together
are marked."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QTimer
from PySide6.QtGui import QAction, QColor, QPixmap, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QWidget

from bench.profile.show.columns import Line, ProfileColumn, ProfileTable, named, short_name
from bench.profile.show.lines import MOST
from bench.show.table import Table, with_headings
from gui.base.theme import Theming
from gui.widgets.table_view import TableView

_NONE: ProfileTable = Table((), ())


class ProfileView(TableView):
    """`picked` carries the row (a dict by the columns' names) that the user went to."""

    widest = 420
    margin = 14
    grows = False
    flush_headings = True

    def __init__(
        self, theming: Theming, name: str, parent: QWidget | None = None, wrap: bool = False
    ) -> None:
        """wrap: rows as high as their texts."""
        super().__init__(name, parent)
        self._theming = theming
        self._wrap = wrap
        self._table = _NONE
        self._most: set[int] = set()  # ids of the rows that are marked
        # Once the columns have their widths: those of the moment may be of another layout.
        self._fitting = QTimer(self, singleShot=True, interval=0)
        self._fitting.timeout.connect(self.resizeRowsToContents)
        self.setWordWrap(wrap)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.horizontalHeader().sectionResized.connect(self._fit_rows)
        self.full = QAction("&Full names", self, checkable=True)
        self.full.setToolTip("Kernel names with their template arguments and parameters")
        self.full.toggled.connect(lambda: self.show_table(self._table))
        self.addAction(self.full)
        theming.changed.connect(self.viewport().update)

    def show_table(self, table: ProfileTable | None) -> None:
        """Show a table, None for none."""
        self._table = table or _NONE
        self._most = _most(self._table)
        super().show_table(self._table if self.full.isChecked() else named(self._table, short_name))
        self._stretch()
        self._fit_rows()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_rows()

    def _stretch(self) -> None:
        """A last column of words has what room is left; wrapped, no more than that."""
        header, last = self.horizontalHeader(), len(self.source.columns) - 1
        words = last >= 0 and self.source.columns[last].left
        header.setStretchLastSection(words and not self._wrap)
        if words and self._wrap:
            header.setMinimumSectionSize(40)
            header.setSectionResizeMode(last, QHeaderView.ResizeMode.Stretch)

    def _fit_rows(self) -> None:
        if self._wrap:
            self._fitting.start()

    def tip(self, row: Line, column: ProfileColumn) -> str:
        """All of a text that may be cut."""
        return str(column.of(row) or "") if column.left else ""

    def bold(self, row: Line, column: ProfileColumn) -> bool:
        return id(row) in self._most

    def swatch(self, row: Line, column: ProfileColumn) -> QPixmap | None:
        if not self._most or column is not self.source.columns[0]:
            return None
        swatch = QPixmap(4, 12)
        swatch.fill(QColor(self._theming.theme.accent) if id(row) in self._most else QColor(0, 0, 0, 0))
        return swatch

    def hides(self, column: ProfileColumn) -> bool:
        return bool(self.source.rows) and super().hides(column)

    def copied(self) -> ProfileTable:
        return replace(self._table, rows=self.chosen_rows())

    def markdown(self, table: ProfileTable) -> str:
        return with_headings([table])


def _most(table: ProfileTable) -> set[int]:
    """The first rows, as they come, up to 90 % of the time."""
    taken: set[int] = set()
    so_far = 0.0
    for row in table.rows if any(column.name == "share" for column in table.columns) else ():
        if so_far >= MOST:
            break
        taken.add(id(row))
        so_far += row["share"]
    return taken
