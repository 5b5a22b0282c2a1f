"""Rows and columns as a Qt model: sorts by value, shows text, and copies as CSV and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QSortFilterProxyModel,
    Qt,
    Signal,
)
from PySide6.QtGui import QAction, QColor, QKeySequence, QPalette
from PySide6.QtWidgets import QAbstractItemView, QApplication, QMenu, QTableView, QWidget

from bench.results import doubt
from bench.results.records import Case
from bench.results.rows import Row
from bench.show import tables
from bench.show.tables import COLUMNS, WORDS, Column
from bench.words import palette
from gui.widgets.labels import as_tip

Index = QModelIndex | QPersistentModelIndex
SORT = Qt.ItemDataRole.UserRole
_NO_INDEX = QModelIndex()
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


class RowsModel(QAbstractTableModel):
    """bench.results.rows as a table. `show_rows` keeps what stays and adds what is new."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: list[Row] = []
        shown = [c for c in COLUMNS if c.name not in HIDDEN]
        self.columns: list[Column] = sorted(shown, key=lambda c: c.name in LAST)

    def show_rows(self, rows: Sequence[Row]) -> None:
        """Make these the rows; a selection stays where rows were only added or derived anew. Rows of cases
        that are being measured come last."""
        lasting = len([row for row in self.rows if not row.provisional])
        if lasting < len(self.rows) and [r.case for r in rows[lasting:]] != [
            r.case for r in self.rows[lasting:]
        ]:
            self.beginRemoveRows(QModelIndex(), lasting, len(self.rows) - 1)
            del self.rows[lasting:]
            self.endRemoveRows()
        old = [row.case for row in self.rows]
        new = [row.case for row in rows]
        if new[: len(old)] != old:
            self.beginResetModel()
            self.rows = list(rows)
            self.endResetModel()
            return
        changed = [i for i, row in enumerate(self.rows) if row is not rows[i]]
        for i in changed:
            self.rows[i] = rows[i]
        if changed:
            last = self.index(changed[-1], len(self.columns) - 1)
            self.dataChanged.emit(self.index(changed[0], 0), last)
        if len(new) > len(old):
            self.beginInsertRows(QModelIndex(), len(old), len(new) - 1)
            self.rows += rows[len(old) :]
            self.endInsertRows()

    def empty_columns(self) -> list[int]:
        """The columns without a value in any row."""
        return [i for i, c in enumerate(self.columns) if all(c.value(row) in (None, "") for row in self.rows)]

    def rowCount(self, parent: Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> Any:
        if role == Qt.ItemDataRole.DisplayRole and orientation == Qt.Orientation.Horizontal:
            return header(self.columns[section].name)
        return None

    def data(self, index: Index, role: int = 0) -> Any:
        row, column = self.rows[index.row()], self.columns[index.column()]
        value = column.value(row)
        if row.provisional and column.name == "disposition":
            value = MEASURING
        if role == Qt.ItemDataRole.DisplayRole:
            return _text(column, value, row)
        if role == Qt.ItemDataRole.ForegroundRole and row.provisional:
            return QPalette().color(QPalette.ColorRole.PlaceholderText)
        if role == SORT:
            return value
        if role == Qt.ItemDataRole.TextAlignmentRole:
            flush = Qt.AlignmentFlag.AlignLeft if isinstance(value, str) else Qt.AlignmentFlag.AlignRight
            return int(flush | Qt.AlignmentFlag.AlignVCenter)
        if role == Qt.ItemDataRole.DecorationRole and column.name == "backend":
            return QColor(palette.backend(row.case.backend))
        if role == Qt.ItemDataRole.ToolTipRole:
            return as_tip(row.measurement.reason or "\n".join(column.doubts(row))) or None
        return None


class _Sorted(QSortFilterProxyModel):
    """By value; what has none comes last, whichever way it is sorted."""

    def lessThan(self, left: Index, right: Index) -> bool:
        a, b = left.data(SORT), right.data(SORT)
        if a is None or b is None:
            ascending = self.sortOrder() == Qt.SortOrder.AscendingOrder
            return (b is None and a is not None) if ascending else (a is None and b is not None)
        return bool(a < b)


class RowsTable(QTableView):
    """The table with its copying. `picked` carries the Case of the row the user went to."""

    picked = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.source = RowsModel(self)
        self._proxy = _Sorted(self)
        self._proxy.setSourceModel(self.source)
        self.setModel(self._proxy)
        self.setSortingEnabled(True)
        self.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setAccessibleName("Measurements")
        self.setTabKeyNavigation(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 7)
        self.horizontalHeader().setHighlightSections(False)
        self._widths: dict[int, int] = {}
        self._fitted = 0  # how many rows there were when the columns were fitted
        self._following = False
        self.selectionModel().currentRowChanged.connect(self._on_current)
        copy = QAction("&Copy as CSV", self)
        copy.setShortcut(QKeySequence.StandardKey.Copy)
        copy.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        copy.triggered.connect(self.copy_csv)
        markdown = QAction("Copy as &Markdown", self)
        markdown.setShortcut(QKeySequence("Ctrl+Shift+C"))
        markdown.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        markdown.triggered.connect(self.copy_markdown)
        self.addActions([copy, markdown])
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._on_menu)

    def show_rows(self, rows: Sequence[Row]) -> None:
        before = self.source.rowCount()
        self.source.show_rows(rows)
        empty = set(self.source.empty_columns())
        for column in range(self.source.columnCount()):
            if self.isColumnHidden(column) != (column in empty):
                self.setColumnHidden(column, column in empty)
        count = self.source.rowCount()
        if count != before and (count < 8 or count >= 1.5 * self._fitted or count < self._fitted):
            self._fitted = count
            self._fit()

    def follow(self, case: Case | None) -> None:
        """Go to the row of a case that was selected elsewhere."""
        row = next((i for i, r in enumerate(self.source.rows) if r.case == case), None)
        self._following = True
        if row is None:
            self.clearSelection()
        elif (at := self._proxy.mapFromSource(self.source.index(row, 1))).row() != self.currentIndex().row():
            self.setCurrentIndex(at)
        self._following = False

    def shown_rows(self, selected: bool = False) -> list[Row]:
        """The measured rows in the order they are sorted; of the selection alone where there is one and it is
        asked for."""
        chosen = {index.row() for index in self.selectionModel().selectedRows()} if selected else set()
        order = sorted(chosen) if len(chosen) > 1 else range(self._proxy.rowCount())
        rows = [self.source.rows[self._proxy.mapToSource(self._proxy.index(i, 0)).row()] for i in order]
        return [row for row in rows if not row.provisional]

    def copy_csv(self) -> None:
        QApplication.clipboard().setText(tables.to_csv(tables.records(self.shown_rows(selected=True))))

    def copy_markdown(self) -> None:
        QApplication.clipboard().setText(tables.to_markdown(self.shown_rows(selected=True)))

    def _fit(self) -> None:
        """Columns as wide as their texts; they grow and never shrink while data comes."""
        for column in range(self.source.columnCount()):
            if not self.isColumnHidden(column):
                header_width = self.horizontalHeader().sectionSizeHint(column)
                wanted = min(320, max(self.sizeHintForColumn(column) + 12, header_width))
                if wanted > self._widths.get(column, 0):
                    self._widths[column] = wanted
                    self.setColumnWidth(column, wanted)

    def _on_current(self, current: QModelIndex) -> None:
        if current.isValid() and not self._following:
            self.picked.emit(self.source.rows[self._proxy.mapToSource(current).row()].case)

    def _on_menu(self, at: QPoint) -> None:
        menu = QMenu(self)
        menu.addActions(self.actions())
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.viewport().mapToGlobal(at))


def header(name: str) -> str:
    """A column's name as a heading: units stand with the values."""
    text = name.replace("_per_s", "/s").removesuffix("_nbytes")
    text = text if text.endswith("/s") else text.removesuffix("_s")
    return (
        text.replace("_", " ")
        .replace("top1", "top-1")
        .replace("top5", "top-5")
        .replace("speedup", "speed-up")
        .replace("disposition", "result")
    )


def _text(column: Column, value: Any, row: Row) -> str:
    if value is None:
        return ""
    if column.name == "disposition":
        return doubt.marked(WORDS.get(value, value), column.doubts(row))
    if column.name == "verdict":
        return column.shown(row).lower()
    if isinstance(value, int) and column.text is str:
        return f"{value:,}"
    return column.shown(row)
