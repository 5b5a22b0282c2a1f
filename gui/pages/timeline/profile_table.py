"""A table of a profile (bench.profile.show.tables) as a Qt view: sorts by value, copies as CSV and Markdown,
and marks the lines that take 90 % of the time together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QColor, QFont, QKeySequence, QPixmap, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QApplication, QHeaderView, QMenu, QTableView, QWidget

from bench.profile.show import names as profile_names
from bench.profile.show import output as profile_output
from bench.profile.show.lines import MOST
from bench.profile.show.tables import Column, Table
from gui.base.theme import Theme, Theming
from gui.widgets.labels import as_tip

Index = QModelIndex | QPersistentModelIndex
_NO_INDEX = QModelIndex()
WIDEST = 420  # pixels of a column


class ProfileModel(QAbstractTableModel):
    """`rows` stand in the order shown."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.table: Table | None = None
        self.columns: tuple[Column, ...] = ()
        self.rows: list[dict[str, Any]] = []
        self.most: set[int] = set()  # id of the rows that are marked
        self.theme: Theme | None = None
        self.short = True
        self._sorted_by = (-1, Qt.SortOrder.AscendingOrder)

    def show_table(self, table: Table | None) -> None:
        self.beginResetModel()
        self.table = table
        self.columns = table.columns if table is not None else ()
        self.rows = list(table.rows) if table is not None else []
        self.most = self._most()
        self._sort()
        self.endResetModel()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self.layoutAboutToBeChanged.emit()
        before = {id(row): index for index, row in enumerate(self.rows)}
        self._sorted_by = (column, order)
        self._sort()
        after = {before[id(row)]: index for index, row in enumerate(self.rows)}
        old = self.persistentIndexList()
        self.changePersistentIndexList(old, [self.index(after[at.row()], at.column()) for at in old])
        self.layoutChanged.emit()

    def _sort(self) -> None:
        column, order = self._sorted_by
        self.rows = list(self.table.rows) if self.table is not None else []
        if 0 <= column < len(self.columns):
            name = self.columns[column].name
            known = [row for row in self.rows if row[name] is not None]
            known.sort(key=lambda row: row[name], reverse=order == Qt.SortOrder.DescendingOrder)
            self.rows = known + [row for row in self.rows if row[name] is None]

    def _most(self) -> set[int]:
        """The first rows, as they come, up to 90 % of the time."""
        taken: set[int] = set()
        so_far = 0.0
        shared = any(column.name == "share" for column in self.columns)
        for row in self.table.rows if self.table is not None and shared else ():
            if so_far >= MOST:
                break
            taken.add(id(row))
            so_far += row["share"]
        return taken

    def text(self, row: dict[str, Any], column: Column) -> str:
        words = profile_output.text(column, row[column.name])
        return profile_names.short(words) if self.short and _is_kernel(column, words) else words

    def rowCount(self, parent: Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> Any:
        if orientation == Qt.Orientation.Horizontal and section < len(self.columns):
            if role == Qt.ItemDataRole.DisplayRole:
                return self.columns[section].title
            if role == Qt.ItemDataRole.TextAlignmentRole:
                return _flush(self.columns[section])
        return None

    def data(self, index: Index, role: int = 0) -> Any:
        row, column = self.rows[index.row()], self.columns[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(row, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _flush(column)
        if role == Qt.ItemDataRole.ToolTipRole and column.kind == "text":
            return as_tip(str(row[column.name] or "")) or None
        if role == Qt.ItemDataRole.FontRole and id(row) in self.most:
            font = QFont()
            font.setBold(True)
            return font
        if (
            role == Qt.ItemDataRole.DecorationRole
            and self.theme is not None
            and self.most
            and not index.column()
        ):
            swatch = QPixmap(4, 12)
            swatch.fill(QColor(self.theme.accent) if id(row) in self.most else QColor(0, 0, 0, 0))
            return swatch
        return None


class ProfileTable(QTableView):
    """`picked` carries the row (a dict by the columns' names) that the user went to."""

    picked = Signal(object)

    def __init__(
        self, theming: Theming, name: str, parent: QWidget | None = None, wrap: bool = False
    ) -> None:
        """wrap: rows as high as their texts."""
        super().__init__(parent)
        self._theming = theming
        self._wrap = wrap
        # Once the columns have their widths: those of the moment may be of another layout.
        self._fitting = QTimer(self, singleShot=True, interval=0)
        self._fitting.timeout.connect(self.resizeRowsToContents)
        self.source = ProfileModel(self)
        self.source.theme = theming.theme
        self.setModel(self.source)
        self.setSortingEnabled(True)
        self.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(wrap)
        self.setTabKeyNavigation(False)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setAccessibleName(name)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 7)
        self.horizontalHeader().setHighlightSections(False)
        self.horizontalHeader().sectionResized.connect(self._fit_rows)
        self.selectionModel().currentRowChanged.connect(self._on_current)
        for words, keys, copy in (
            ("&Copy as CSV", QKeySequence(QKeySequence.StandardKey.Copy), self.copy_csv),
            ("Copy as &Markdown", QKeySequence("Ctrl+Shift+C"), self.copy_markdown),
        ):
            action = QAction(words, self)
            action.setShortcut(keys)
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
            action.triggered.connect(copy)
            self.addAction(action)
        self.full = QAction("&Full names", self, checkable=True)
        self.full.setToolTip("Kernels' names with their templates and parameters")
        self.full.toggled.connect(self._on_full)
        self.addAction(self.full)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._on_menu)
        theming.changed.connect(self._restyle)

    def show_table(self, table: Table | None) -> None:
        """Show a table, None for none; the columns as wide as their values."""
        before = [column.name for column in self.source.columns]
        self.source.show_table(table)
        if before != [column.name for column in self.source.columns]:
            self.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
        for index in range(self.source.columnCount()):
            heading = self.horizontalHeader().sectionSizeHint(index)
            self.setColumnWidth(index, min(WIDEST, max(self.sizeHintForColumn(index) + 14, heading)))
        self._hide_empty()
        self._stretch()
        self._fit_rows()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_rows()

    def _hide_empty(self) -> None:
        """Columns without any value."""
        for index, column in enumerate(self.source.columns):
            empty = all(row[column.name] in (None, "") for row in self.source.rows)
            self.setColumnHidden(index, empty and bool(self.source.rows))

    def _stretch(self) -> None:
        """A last column of words has what room is left; wrapped, no more than that."""
        header, last = self.horizontalHeader(), len(self.source.columns) - 1
        words = last >= 0 and self.source.columns[last].kind == "text"
        header.setStretchLastSection(words and not self._wrap)
        if words and self._wrap:
            header.setMinimumSectionSize(40)
            header.setSectionResizeMode(last, QHeaderView.ResizeMode.Stretch)

    def _fit_rows(self) -> None:
        if self._wrap:
            self._fitting.start()

    def copy_csv(self) -> None:
        if (table := self._chosen()) is not None:
            QApplication.clipboard().setText(profile_output.to_csv(table))

    def copy_markdown(self) -> None:
        if (table := self._chosen()) is not None:
            QApplication.clipboard().setText(profile_output.to_markdown([table]))

    def _chosen(self) -> Table | None:
        """The table as sorted; the selected rows alone where there are several."""
        if self.source.table is None:
            return None
        chosen = sorted(index.row() for index in self.selectionModel().selectedRows())
        rows = [self.source.rows[i] for i in chosen] if len(chosen) > 1 else self.source.rows
        return replace(self.source.table, rows=tuple(rows))

    def _on_current(self, current: QModelIndex) -> None:
        if current.isValid():
            self.picked.emit(self.source.rows[current.row()])

    def _on_full(self, full: bool) -> None:
        self.source.short = not full
        self.show_table(self.source.table)

    def _on_menu(self, at: QPoint) -> None:
        menu = QMenu(self)
        menu.addActions(self.actions())
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.viewport().mapToGlobal(at))

    def _restyle(self) -> None:
        self.source.theme = self._theming.theme
        self.viewport().update()


def _flush(column: Column) -> int:
    side = Qt.AlignmentFlag.AlignLeft if column.kind == "text" else Qt.AlignmentFlag.AlignRight
    return int(side | Qt.AlignmentFlag.AlignVCenter)


def _is_kernel(column: Column, words: str) -> bool:
    return column.name == "name" and ("<" in words or "(" in words) and not words.startswith("(")
