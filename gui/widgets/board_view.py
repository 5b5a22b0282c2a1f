"""The scoreboard (bench.views.charts) in the window: a line a backend, a column a batch size, each cell
how fast it is beside its reference. What is behind a cell is its tooltip."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from PySide6.QtCore import QModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QBoxLayout,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from bench.views.charts.scoreboard import Line, Scoreboard
from bench.views.tables import scoreboard
from bench.views.tables.table import Column, Table, to_markdown
from bench.words import palette
from gui.base.scale import GAP
from gui.base.theme import Theming
from gui.widgets.table_view import TableView
from gui.widgets.verdict_strip import HIGH, QWIDGETSIZE_MAX

MOST = 0.3  # of the window's height, beyond which it scrolls
SHARE = 0.6  # of the width that a board may have beside words
WIDEST = "10.0× slower"  # for which each batch size has room from the start: the board holds still


class BesideBoard(QBoxLayout):
    """A widget of words with the board at its right; below it where the board needs most of the width and the
    window is at least HIGH. In a lower one the board is as high as the words."""

    def __init__(self, words: QWidget, board: BoardView) -> None:
        super().__init__(QBoxLayout.Direction.LeftToRight)
        self._board = board
        board.words = words
        self.setSpacing(GAP)
        self.addWidget(words, 1, Qt.AlignmentFlag.AlignTop)
        self.addWidget(board, 0, Qt.AlignmentFlag.AlignTop)

    def setGeometry(self, rect: QRect) -> None:
        room = round(SHARE * rect.width())
        low = self._board.window().height() < HIGH
        beside = low or self._board.sizeHint().width() <= room
        self._board.setMaximumWidth(room if beside else QWIDGETSIZE_MAX)
        wanted = QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom
        if wanted != self.direction():
            self.setDirection(wanted)
            self.setSpacing(GAP if beside else 0)
        super().setGeometry(rect)


class FramedCells(QStyledItemDelegate):
    """A selected cell has a frame: its colour is its verdict's, and a selection's would be taken for one."""

    FRAME = 2  # pixels

    def __init__(self, theming: Theming, parent: QWidget) -> None:
        super().__init__(parent)
        self._theming = theming

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | Any) -> None:
        plain = QStyleOptionViewItem(option)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        plain.state &= ~(QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_HasFocus)
        super().paint(painter, plain, index)
        if selected:
            painter.save()
            painter.setPen(QColor(self._theming.theme.ink))
            for inset in range(self.FRAME):
                painter.drawRect(option.rect.adjusted(inset, inset, -1 - inset, -1 - inset))
            painter.restore()


class BoardView(TableView):
    """`pointed` carries the contender and the batch size of the cell that the user went to."""

    pointed = Signal(str, float)
    words: QWidget | None = None  # what it stands beside
    sortable = False
    row_margin = 4

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__("Scoreboard", theming, parent)
        self._board: Scoreboard | None = None
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectItems)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setAlternatingRowColors(False)
        self.setItemDelegate(FramedCells(theming, self))
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.selectionModel().currentChanged.connect(self._on_cell)
        self.hide()

    def show_board(self, board: Scoreboard | None) -> None:
        """Show this one; None, or one that compares nothing, takes no room."""
        if board == self._board:
            return
        self._board = board
        told = board is not None and board.tells
        if board is not None and told:
            self.show_table(scoreboard.table(board))
        self.setVisible(told)
        self.updateGeometry()

    def point_at(self, contender: str, batch: int) -> None:
        """Mark the cell of what was selected elsewhere."""
        batches = [scoreboard.batch_of(column) for column in self.source.columns]
        rows = [line.contender for line in self.source.rows]
        if contender not in rows or batch not in batches:
            return
        self._following = True
        self.setCurrentIndex(self.source.index(rows.index(contender), batches.index(batch)))
        self._following = False

    def sizeHint(self) -> QSize:
        """As large as its lines and columns, up to its share of the window's height."""
        frame = 2 * self.frameWidth()
        head, line = self.horizontalHeader().sizeHint().height(), self.verticalHeader().defaultSectionSize()
        high = head + self.source.rowCount() * line + frame
        if self.horizontalScrollBar().isVisible():
            high += self.horizontalScrollBar().sizeHint().height()
        whole = self.window().height()
        most = round(MOST * whole)
        if whole < HIGH:
            most = max(head + line + frame, self.words.minimumHeight() if self.words is not None else 0)
        wide = self.horizontalHeader().length() + frame
        if high > most:
            wide += self.verticalScrollBar().sizeHint().width()
        return QSize(wide, min(high, most))

    def minimumSizeHint(self) -> QSize:
        return QSize(100, 0)

    # ---------------------------------------------------------------------------------- what a table is asked

    def key(self, row: Line) -> Hashable:
        return row.contender

    def ink(self, row: Line, column: Column[Line]) -> QColor | None:
        theme, batch = self.theme, scoreboard.batch_of(column)
        if batch is None or column.fill is None:
            return QColor(theme.muted) if row.is_reference else None
        if colour := column.fill(row, theme.dark):
            return QColor(palette.ink_on(colour))
        return QColor(theme.failed if row.at(batch).grade == "wrong" else theme.muted)

    def bold(self, row: Line, column: Column[Line]) -> bool:
        batch = scoreboard.batch_of(column)
        return batch is not None and row.at(batch).grade == "wrong"

    def fill(self, row: Line, column: Column[Line]) -> QColor | None:
        colour = column.fill(row, self.theme.dark) if column.fill is not None else ""
        return QColor(colour) if colour else None

    def swatch(self, row: Line, column: Column[Line]) -> QColor | None:
        return QColor(palette.backend(row.backend)) if column.name == "contender" else None

    def hides(self, column: Column[Line]) -> bool:
        return False

    def heading_width(self, place: int) -> int:
        wide = self.fontMetrics().horizontalAdvance(WIDEST) + 2 * self.margin
        of_batch = scoreboard.batch_of(self.source.columns[place]) is not None
        return max(super().heading_width(place), wide if of_batch else 0)

    def copied(self) -> Table[Any]:
        """What is behind each cell, as the exported picture's numbers have it."""
        return scoreboard.numbers(self._board) if self._board is not None else self.source.table

    def markdown(self, table: Table[Any]) -> str:
        return to_markdown(self.source.table)

    # ------------------------------------------------------------------------------------------------- events

    def _on_current(self, current: QModelIndex) -> None:
        """A cell is gone to, not a row."""

    def _on_cell(self, current: QModelIndex) -> None:
        if not current.isValid() or self._following:
            return
        line, column = self.source.rows[current.row()], self.source.columns[current.column()]
        if (batch := scoreboard.batch_of(column)) is not None:
            self.pointed.emit(line.contender, float(batch))
