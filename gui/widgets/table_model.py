"""A table (bench.show.table) as Qt knows one: sorted by value, what has none last whichever way."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QColor, QFont, QPixmap
from PySide6.QtWidgets import QWidget

from bench.show.table import Column, Table
from bench.words import glossary
from gui.widgets.labels import as_tip, plain_meaning

Index = QModelIndex | QPersistentModelIndex
_NO_INDEX = QModelIndex()


class Looks(Protocol):
    """What a view knows of its rows beside their columns."""

    flush_headings: bool  # headings stand as their values do

    def key(self, row: Any) -> Hashable | None:
        """By what a row is known again in the next table; None: each table is a new one."""

    def tip(self, row: Any, column: Column[Any]) -> str: ...
    def ink(self, row: Any, column: Column[Any]) -> QColor | None: ...
    def fill(self, row: Any, column: Column[Any]) -> QColor | None: ...
    def bold(self, row: Any, column: Column[Any]) -> bool: ...
    def swatch(self, row: Any, column: Column[Any]) -> QColor | QPixmap | None: ...
    def heading_swatch(self, column: Column[Any]) -> QColor | None: ...


class TableModel(QAbstractTableModel):
    """`rows` stand in the order shown."""

    def __init__(self, looks: Looks, parent: QWidget) -> None:
        super().__init__(parent)
        self.table: Table[Any] = Table((), ())
        self.rows: list[Any] = []
        self._looks = looks
        self._sorted_by = (-1, Qt.SortOrder.AscendingOrder)

    @property
    def columns(self) -> Sequence[Column[Any]]:
        return self.table.columns

    def show_table(self, table: Table[Any]) -> None:
        """Show this one. A selection stays where rows were added, changed or taken away and others stay."""
        key = self._looks.key
        new = {key(row): row for row in table.rows}
        held = [key(row) for row in self.rows]
        names = [column.name for column in table.columns]
        kept = len(new) == len(table.rows) and None not in new and not new.keys().isdisjoint(held)
        if not kept or names != [column.name for column in self.columns]:
            self.beginResetModel()
            self.table, self.rows = table, list(table.rows)
            self.rows = self._in_order()
            self.endResetModel()
            return
        for place in reversed(range(len(held))):
            if held[place] not in new:
                self.beginRemoveRows(_NO_INDEX, place, place)
                del self.rows[place]
                self.endRemoveRows()
        before, columns = self.rows, self.columns
        self.table, self.rows = table, [new.pop(key(row)) for row in before]
        everything = columns is not table.columns
        changed = [i for i, row in enumerate(self.rows) if everything or row is not before[i]]
        if changed:
            last = self.index(changed[-1], len(names) - 1)
            self.dataChanged.emit(self.index(changed[0], 0), last)
        if new:
            self.beginInsertRows(_NO_INDEX, len(self.rows), len(self.rows) + len(new) - 1)
            self.rows += new.values()
            self.endInsertRows()
        self._arrange()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._sorted_by = (column, order)
        self._arrange()

    def _arrange(self) -> None:
        rows = self._in_order()
        if all(a is b for a, b in zip(rows, self.rows, strict=True)):
            return
        self.layoutAboutToBeChanged.emit()
        after = {id(row): place for place, row in enumerate(rows)}
        old = self.persistentIndexList()
        new = [self.index(after[id(self.rows[at.row()])], at.column()) for at in old]
        self.rows = rows
        self.changePersistentIndexList(old, new)
        self.layoutChanged.emit()

    def _in_order(self) -> list[Any]:
        """What is alike in the column sorted by stays as the one before it had it."""
        place, order = self._sorted_by
        if not 0 <= place < len(self.columns):
            return list(self.table.rows)
        value = self.columns[place].of
        known = [row for row in self.rows if value(row) is not None]
        known.sort(key=value, reverse=order == Qt.SortOrder.DescendingOrder)
        return known + [row for row in self.rows if value(row) is None]

    def rowCount(self, parent: Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.columns)

    def term(self, section: int) -> str:
        """The word of the glossary that a heading is, "" for none."""
        column = self.columns[section]
        return glossary.find(column.heading) or glossary.find(column.name)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> Any:
        if orientation == Qt.Orientation.Vertical or section >= len(self.columns):
            return None
        column = self.columns[section]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return column.heading
            case Qt.ItemDataRole.ToolTipRole:
                term = self.term(section)
                told = f"{term}: {plain_meaning(term)}" if term else ""
                return as_tip("\n".join(filter(None, [column.tip, told]))) or None
            case Qt.ItemDataRole.TextAlignmentRole if self._looks.flush_headings:
                return _flush(column)
            case Qt.ItemDataRole.DecorationRole:
                return self._looks.heading_swatch(column)
        return None

    def data(self, index: Index, role: int = 0) -> Any:
        row, column, looks = self.rows[index.row()], self.columns[index.column()], self._looks
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return column.shown(row)
            case Qt.ItemDataRole.TextAlignmentRole:
                return _flush(column)
            case Qt.ItemDataRole.ForegroundRole:
                return looks.ink(row, column)
            case Qt.ItemDataRole.BackgroundRole:
                return looks.fill(row, column)
            case Qt.ItemDataRole.DecorationRole:
                return looks.swatch(row, column)
            case Qt.ItemDataRole.ToolTipRole:
                return as_tip(looks.tip(row, column)) or None
            case Qt.ItemDataRole.FontRole if looks.bold(row, column):
                font = QFont()
                font.setBold(True)
                return font
        return None


def _flush(column: Column[Any]) -> int:
    side = Qt.AlignmentFlag.AlignLeft if column.left else Qt.AlignmentFlag.AlignRight
    if column.fill is not None:
        side = Qt.AlignmentFlag.AlignHCenter
    return int(side | Qt.AlignmentFlag.AlignVCenter)
