"""The scoreboard (bench.views.charts) of one model, small: a line for each backend that is compared, a column
for each batch size, in each cell how fast it is beside its reference."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from PySide6.QtCore import QEvent, QModelIndex, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
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
from gui.base.theme import GAP, Theming
from gui.widgets.table_view import TableView

MOST_LINES = 4  # beyond which it scrolls
BESIDE = 7  # pixels that Qt leaves beside a text, both sides together
BEFORE = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
WIDEST_CELL = "▼ 10.0×"  # each batch size has room for this from the start, so that the board does not move


class FramedCells(QStyledItemDelegate):
    """Draws a frame around the selected cell. A cell's colour is its verdict, so a selection cannot change
    it."""

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
    """The scoreboard. `pointed` carries the contender and the batch size of the cell that the user went
    to. What is behind a cell is its tooltip."""

    pointed = Signal(str, float)
    sortable = False
    row_margin = 2
    margin, padding = 2, 0
    _narrow = False  # not all batch sizes are visible

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__("Scoreboard", theming, parent)
        self._board: Scoreboard | None = None
        self._widths_of: dict[int, tuple[int, int]] = {}  # of columns: see `_widths_wanted`
        self._alike: Sequence[BoardView] = (self,)  # see `align`
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectItems)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setAlternatingRowColors(False)
        self.setItemDelegate(FramedCells(theming, self))
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.selectionModel().currentChanged.connect(self._on_cell)
        self.hide()

    def show_board(self, board: Scoreboard | None) -> None:
        """Show a board. None, or one without comparisons, takes no room."""
        if board == self._board:
            return
        self._board = board
        self._widths_of.clear()
        compares = board is not None and board.has_comparisons
        if board is not None and compares:
            self.show_table(scoreboard.table(board, small=True))
            self._squeeze()
        self.setVisible(compares)
        self.updateGeometry()

    def point_at(self, contender: str, batch: int) -> None:
        """Mark the cell of what was selected elsewhere."""
        batches = [scoreboard.batch_of(column) for column in self.source.columns]
        rows = [line.contender for line in self.source.rows]
        self._following = True
        if contender not in rows or batch not in batches:
            self.selectionModel().clear()  # the current cell, too: a click on it is to go to it again
            self._following = False
            return
        self.setCurrentIndex(self.source.index(rows.index(contender), batches.index(batch)))
        self._following = False

    def sizeHint(self) -> QSize:
        """The size of all columns, and of the lines up to MOST_LINES."""
        frame = 2 * self.frameWidth()
        head = 0 if self.horizontalHeader().isHidden() else self.horizontalHeader().sizeHint().height()
        line = self.verticalHeader().defaultSectionSize()
        count = self.source.rowCount()
        high = head + min(count, MOST_LINES) * line + frame
        if self._narrow:
            high += self.horizontalScrollBar().sizeHint().height()
        wide = self.horizontalHeader().length() + frame
        wide += sum(self._usual(place) - self.columnWidth(place) for place in self._batches())
        if count > MOST_LINES:
            wide += self.verticalScrollBar().sizeHint().width()
        return QSize(wide, high)

    @property
    def least_width(self) -> int:
        """In which no column is out of sight."""
        if not self.source.columns:
            return 0
        batches = sum(self._widths_of_all(place)[0] for place in self._batches())
        return self._names + batches + 2 * self.frameWidth()

    def minimumSizeHint(self) -> QSize:
        """With room for the names, and one batch size."""
        names = self._names if self.source.columns else 0
        return QSize(
            max(100, names + max(map(self._usual, self._batches()), default=0)), self.sizeHint().height()
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._squeeze()
        narrow = self.horizontalHeader().length() > self.width()
        if narrow != self._narrow:
            self._narrow = narrow
            self.updateGeometry()

    def _batches(self) -> list[int]:
        """The places of the columns that are batch sizes."""
        of = map(scoreboard.batch_of, self.source.columns)
        return [place for place, batch in enumerate(of) if batch is not None]

    def _widths_wanted(self, place: int) -> tuple[int, int]:
        """The width that the texts of a column cannot do without, also those that may still come, and its
        width where there is room. Kept until there is another board or font: it is asked for often."""
        if place not in self._widths_of:
            texts = (self.source.index(row, place).data() for row in range(self.source.rowCount()))
            advance = self.fontMetrics().horizontalAdvance
            pending = any(cell.grade == "pending" for line in self.source.rows for cell in line.cells)
            least = max(map(advance, (WIDEST_CELL * pending, *(str(text or "") for text in texts)))) + BESIDE
            wide = advance(WIDEST_CELL) + 2 * GAP
            self._widths_of[place] = least, max(super().heading_width(place), wide, least)
        return self._widths_of[place]

    def _widths_of_all(self, place: int) -> tuple[int, int]:
        """The same where it stands in line with other boards: the widest of theirs."""
        widths = [board._widths_wanted(place) for board in self._alike]
        return max(least for least, _ in widths), max(usual for _, usual in widths)

    @property
    def _names(self) -> int:
        """The width of the backends' names."""
        return max(board._widths.get(0, board.columnWidth(0)) for board in self._alike)

    def _usual(self, place: int) -> int:
        return self._widths_of_all(place)[1]

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.FontChange:
            self._widths_of.clear()
        super().changeEvent(event)

    def _squeeze(self) -> None:
        """Make the batch sizes narrower before any of them is out of sight, down to what is in them."""
        places = self._batches()
        if not places:
            return
        if self.columnWidth(0) != self._names:
            self.setColumnWidth(0, self._names)
        rest = self.horizontalHeader().length() - sum(map(self.columnWidth, places))
        room, wanted = self.viewport().width() - rest, [self._widths_of_all(place) for place in places]

        def widths(each: int) -> list[int]:
            return [max(least, min(usual, each)) for least, usual in wanted]

        # The same for all, but for those that need more.
        each = max(usual for _, usual in wanted)
        while sum(widths(each)) > room and each > 0:
            each -= 1
        for place, width in zip(places, widths(each), strict=True):
            self.setColumnWidth(place, width)

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

    def heading_flush(self, column: Column[Line]) -> int:
        """What the batch sizes are called stands before them, and not above the names."""
        flush = super().heading_flush(column)
        return flush if scoreboard.batch_of(column) is not None else int(BEFORE)

    def heading_width(self, place: int) -> int:
        of_batch = scoreboard.batch_of(self.source.columns[place]) is not None
        return self._usual(place) if of_batch else super().heading_width(place)

    def copied(self) -> Table[Any]:
        """The numbers behind the cells, as an exported picture has them."""
        return scoreboard.numbers(self._board) if self._board is not None else self.source.table

    def markdown(self, table: Table[Any]) -> str:
        return to_markdown(scoreboard.table(self._board)) if self._board is not None else ""

    # ------------------------------------------------------------------------------------------------- events

    def _on_current(self, current: QModelIndex) -> None:
        """Nothing: the user goes to cells, not to rows."""

    def _on_cell(self, current: QModelIndex) -> None:
        if not current.isValid() or self._following:
            return
        line, column = self.source.rows[current.row()], self.source.columns[current.column()]
        if (batch := scoreboard.batch_of(column)) is not None:
            self.pointed.emit(line.contender, float(batch))


def align(boards: Sequence[BoardView]) -> None:
    """Let boards that stand below each other have columns of the same width where they have the same batch
    sizes; then only the first of them needs headings."""
    shown = [board for board in boards if board._board is not None and board._board.has_comparisons]
    of = [tuple(column.name for column in board.source.columns) for board in shown]
    for place, board in enumerate(shown):
        board._alike = [other for other, columns in zip(shown, of, strict=True) if columns == of[place]]
        repeated = place > 0 and of[place] == of[place - 1]
        board.horizontalHeader().setHidden(repeated)
        board._squeeze()
        board.updateGeometry()
