"""The table of layers: sorts by value, and copies as CSV and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QAction, QColor, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QApplication, QMenu, QTableView, QWidget

from bench.words import palette
from gui.base.theme import Theme
from gui.pages.layers.layer_rows import LayerColumn, LayerRow, tip, to_csv, to_markdown
from gui.widgets.labels import as_tip

Index = QModelIndex | QPersistentModelIndex
_NO_INDEX = QModelIndex()


class LayerModel(QAbstractTableModel):
    """`rows` stand in the order shown; sorted by a column's values, what has none last whichever way."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: list[LayerRow] = []
        self.columns: list[LayerColumn] = []
        self.theme = theme
        self._sorted_by = (-1, Qt.SortOrder.AscendingOrder)

    def show_rows(self, rows: Sequence[LayerRow], columns: Sequence[LayerColumn]) -> None:
        self.beginResetModel()
        self.rows, self.columns = list(rows), list(columns)
        self._sort()
        self.endResetModel()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self.layoutAboutToBeChanged.emit()
        before = {row.place: index for index, row in enumerate(self.rows)}
        self._sorted_by = (column, order)
        self._sort()
        after = {before[row.place]: index for index, row in enumerate(self.rows)}
        old = self.persistentIndexList()
        self.changePersistentIndexList(old, [self.index(after[at.row()], at.column()) for at in old])
        self.layoutChanged.emit()

    def _sort(self) -> None:
        column, order = self._sorted_by
        self.rows.sort(key=lambda row: row.place)
        if 0 <= column < len(self.columns):
            value = self.columns[column].value
            known = [row for row in self.rows if value(row) is not None]
            known.sort(key=value, reverse=order == Qt.SortOrder.DescendingOrder)
            self.rows = known + [row for row in self.rows if value(row) is None]

    def rowCount(self, parent: Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> Any:
        if orientation == Qt.Orientation.Horizontal and section < len(self.columns):
            column = self.columns[section]
            if role == Qt.ItemDataRole.DisplayRole:
                return column.heading
            if role == Qt.ItemDataRole.ToolTipRole:
                return as_tip(column.tip) or None
            if role == Qt.ItemDataRole.DecorationRole and column.name.endswith(" time_s"):
                return QColor(palette.backend(column.heading.partition(" ")[0]))
        return None

    def data(self, index: Index, role: int = 0) -> Any:
        row, column = self.rows[index.row()], self.columns[index.column()]
        value = column.value(row)
        if role == Qt.ItemDataRole.DisplayRole:
            return "" if value is None else column.text(value)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            flush = (
                Qt.AlignmentFlag.AlignLeft if isinstance(value, str | tuple) else Qt.AlignmentFlag.AlignRight
            )
            return int(flush | Qt.AlignmentFlag.AlignVCenter)
        if role == Qt.ItemDataRole.ForegroundRole and value is False:
            return QColor(self.theme.failed)
        if role == Qt.ItemDataRole.ToolTipRole:
            return as_tip(tip(row))
        return None


class LayerTable(QTableView):
    """`picked` carries the output tensor of the layer gone to ("" for what a backend adds itself)."""

    picked = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.source = LayerModel(theme, self)
        self.setModel(self.source)
        self.setSortingEnabled(True)
        self.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setAccessibleName("Layers")
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 7)
        self.horizontalHeader().setHighlightSections(False)
        self.horizontalHeader().setSectionsMovable(True)
        self._names: list[str] = []
        self._fitted: dict[int, int] = {}  # column → the width last given to it
        self._following = False
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
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._on_menu)

    def show_rows(self, rows: Sequence[LayerRow], columns: Sequence[LayerColumn]) -> None:
        """Make these the rows; columns without any value are hidden."""
        self._following = True
        self.source.show_rows(rows, columns)
        self._following = False
        names = [column.name for column in columns]
        for index, column in enumerate(columns):
            self.setColumnHidden(index, all(column.value(row) is None for row in rows))
        if names != self._names:
            self._names = names
            self._fitted.clear()
            self.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
        for index in range(len(columns)):
            if not self.isColumnHidden(index):
                heading = self.horizontalHeader().sectionSizeHint(index)
                wanted = min(260, max(self.sizeHintForColumn(index) + 12, heading))
                # Wider where the values have become so; as the user left it otherwise.
                if wanted > self._fitted.get(index, 0):
                    self._fitted[index] = wanted
                    self.setColumnWidth(index, wanted)

    def follow(self, output: str) -> None:
        """Go to the row of a layer that was selected elsewhere."""
        row = next((i for i, r in enumerate(self.source.rows) if output and r.layer.output == output), None)
        self._following = True
        if row is None:
            here = self.currentIndex()
            if not here.isValid() or output or self.source.rows[here.row()].layer.output:
                self.clearSelection()
        else:
            column = max(0, self.currentIndex().column())
            self.setCurrentIndex(self.source.index(row, column))
            self.selectRow(row)
        self._following = False

    def copy_csv(self) -> None:
        QApplication.clipboard().setText(to_csv(self._chosen(), self.source.columns))

    def copy_markdown(self) -> None:
        shown = [c for i, c in enumerate(self.source.columns) if not self.isColumnHidden(i)]
        QApplication.clipboard().setText(to_markdown(self._chosen(), shown))

    def _chosen(self) -> list[LayerRow]:
        """The selected rows where there are several, else all, as sorted."""
        chosen = sorted(index.row() for index in self.selectionModel().selectedRows())
        return [self.source.rows[i] for i in chosen] if len(chosen) > 1 else list(self.source.rows)

    def _on_current(self, current: QModelIndex) -> None:
        if current.isValid() and not self._following:
            self.picked.emit(self.source.rows[current.row()].layer.output)

    def _on_menu(self, at: QPoint) -> None:
        menu = QMenu(self)
        menu.addActions(self.actions())
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.viewport().mapToGlobal(at))
