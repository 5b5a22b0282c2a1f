"""The verdicts of a run in large letters: for each model one line for each comparison, and whether it is
reliable; a click on a clause selects its points. And the scoreboard (bench.views.charts): a line
for each backend, a column for each batch size, in each cell how fast it is beside its reference."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from html import escape
from typing import Any

from PySide6.QtCore import QEvent, QModelIndex, QObject, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QBoxLayout,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from bench.results.records import Case
from bench.results.rows import title
from bench.views.charts.scoreboard import Line, Scoreboard
from bench.views.sentences.verdicts import CLOCK, Clause, ModelVerdict
from bench.views.tables import scoreboard
from bench.views.tables.table import Column, Table, to_markdown
from bench.words import palette
from gui.base.boxes import ScrollArea, filled
from gui.base.theme import GAP, Theme, Theming, resized
from gui.widgets.controls import Label
from gui.widgets.table_view import TableView

LARGER = 3.5  # points by which a line is larger than the text around it
QWIDGETSIZE_MAX = (1 << 24) - 1
HIGH = 800  # pixels; in a lower window the lines are as large as the text around them
MUCH = 800  # characters in all lines; with more, the lines are only half as much larger
MOST = 0.34  # of the window's height, beyond which the strip scrolls
LOW_MOST = 0.05  # the same for a low window whose page has no room to spare
REST = 440  # pixels that charts in one row, legend and table need in a low window
LOW_FIRST = 0.075  # the same for a low window, if the first model's sentence is longer
KEPT = 3.4  # lines for which each model has room from the start
# Shown if every batch size has a verdict and nothing is in doubt.
RELIABLE = "\N{CHECK MARK}\N{NO-BREAK SPACE}reliable"
TIP = "Click a part of the sentence to go to its points, and again for the next of them"


class VerdictStrip(ScrollArea):
    """The verdicts. `picked` carries the Case of a point that a clause is about; another click on the same
    clause gives the next one."""

    picked = Signal(object)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__("ModelVerdict", False, parent)
        self._theming = theming
        self._shown: object = None
        self._roomy = True
        self._lines: list[_Line] = []
        self._inside = QWidget()
        self._layout = filled(QVBoxLayout(self._inside), margins=(4, 2, 4, 6), spacing=4)
        self.setWidget(self._inside)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theming.changed.connect(self._restyle)

    @property
    def texts(self) -> list[str]:
        """The lines as plain text."""
        return [line.words for line in self._lines]

    @property
    def lines(self) -> Sequence[QWidget]:
        return tuple(self._lines)

    def show_verdicts(self, verdicts: Sequence[ModelVerdict], model: str) -> None:
        """Show a line for each verdict. model: the one whose charts are shown below."""
        if (tuple(verdicts), model) == self._shown:
            return
        foremost = self._shown[1] if isinstance(self._shown, tuple) else ""
        self._shown = (tuple(verdicts), model)
        while len(self._lines) < len(verdicts):
            line = _Line()
            line.case_wanted.connect(self.picked)
            self._layout.addWidget(line)
            self._lines.append(line)
        for line in self._lines[len(verdicts) :]:
            line.hide()
            line.deleteLater()
        del self._lines[len(verdicts) :]
        low = self.window().height() < HIGH
        much = sum(len(verdict.line) for verdict in verdicts) > MUCH
        larger = 0 if low else LARGER / 2 if much else LARGER
        for line, verdict in zip(self._lines, verdicts, strict=True):
            line.setFont(resized(self.font(), more=larger))
            line.show_verdict(verdict, self._theming.theme)
        self._fit()
        if foremost != model:
            for line, verdict in zip(self._lines, verdicts, strict=True):
                if verdict.model == model:
                    self.ensureWidgetVisible(line, 0, 0)

    def give(self, roomy: bool) -> None:
        """Say whether the charts below need little height, which matters in a low window."""
        if roomy != self._roomy:
            self._roomy = roomy
            self._fit()

    def sizeHint(self) -> QSize:
        return QSize(200, self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if (page := self.parentWidget()) is not None:
            page.installEventFilter(self)  # installed once, even if this is called often
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.parentWidget() and event.type() == QEvent.Type.Resize:
            self._fit()
        return super().eventFilter(watched, event)

    def _fit(self) -> None:
        """Set the height: all lines at this width, up to the strip's share of the window."""
        around = self._layout.contentsMargins()
        width = max(100, self.viewport().width() - around.left() - around.right())
        low = self.window().height() < HIGH
        # line_ends: the lower ends of all lines of text, so that none is cut.
        wanted, line_ends = around.top(), [1]
        for line in self._lines:
            # Each model has room for some lines from the start, so that the charts below move little.
            height = max(line.heightForWidth(width), round((1 if low else KEPT) * line.line_height))
            count = max(1, round(height / line.line_height))
            line_ends += [wanted + height * (number + 1) // count for number in range(count)]
            wanted += height + self._layout.spacing()
        wanted += around.bottom() - self._layout.spacing()
        whole = self.window().height() if self.window() is not self else QWIDGETSIZE_MAX
        room = round(MOST * whole)
        if whole < HIGH:
            page = self.parentWidget()
            spare = page.height() - REST if self._roomy and page is not None else 0
            first = around.top() + (self._lines[0].heightForWidth(width) if self._lines else 0)
            room = max(spare, round(LOW_MOST * whole), min(first, round(LOW_FIRST * whole)))
        self.setFixedHeight(
            wanted if wanted <= room else max(end for end in line_ends if end <= max(room, 1))
        )
        self.verticalScrollBar().setSingleStep(self._lines[0].line_height if self._lines else 1)

    def _restyle(self) -> None:
        contents, self._shown = self._shown, None
        if isinstance(contents, tuple):
            self.show_verdicts(*contents)


class _Line(Label):
    """The sentence of one model. Each clause with points is a link to them."""

    case_wanted = Signal(object)

    def __init__(self) -> None:
        super().__init__(wrap=True, rich=True)
        self._clauses: tuple[Clause, ...] = ()
        self._hovered = ""
        self._last: Case | None = None
        self.words = ""
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.LinksAccessibleByMouse | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self.setToolTip(TIP)
        self.linkActivated.connect(self._on_link)
        self.linkHovered.connect(self._on_hovered)

    @property
    def line_height(self) -> int:
        return self.fontMetrics().lineSpacing()

    def show_verdict(self, verdict: ModelVerdict, theme: Theme) -> None:
        self._clauses = verdict.clauses
        named = title(verdict.model) + f", {verdict.precision}" * bool(verdict.precision)
        self.words = verdict.line or f"{named}: nothing is measured yet."
        self.setAccessibleName(self.words)
        ink = theme.ink
        lines = [
            self._marked_up(verdict.clauses_of(who), theme, ink)
            + (f' &nbsp;<b style="color:{theme.good}">{RELIABLE}</b>' if verdict.reliable(who) else "")
            for who in verdict.contenders
        ]
        if rest := verdict.clauses_of(""):
            lines.append(self._marked_up(rest, theme, ink))
        lines = lines or ["nothing is measured yet."]
        of = f", {verdict.precision}" * bool(verdict.precision)
        clock = f'{of}<span style="color:{theme.muted}">{CLOCK}</span>' if verdict.clauses else of
        first = f"<b>{escape(title(verdict.model))}</b>{clock}: {lines[0]}"
        indent = self.fontMetrics().horizontalAdvance("nn")
        below = "".join(f'<div style="margin-left:{indent}px">{line}</div>' for line in lines[1:])
        self.setText(f'<div style="color:{ink}"><div>{first}</div>{below}</div>')

    def _marked_up(self, clauses: Sequence[Clause], theme: Theme, ink: str) -> str:
        """Clauses as HTML, each a link. What is in doubt gets no colour that means certainty."""
        colours = {
            "faster": theme.good,
            "slower": theme.failed,
            "differ": theme.failed,
            "unclear": theme.warning,
            "doubtful": theme.warning,
            "answers": theme.good,
        }
        parts = []
        for number, clause in enumerate(clauses):
            before, stress, after = (
                clause.text.partition(clause.stress) if clause.stress else (clause.text, "", "")
            )
            # Names of backends stay on one line.
            unbroken = (part.replace("-", "\N{NON-BREAKING HYPHEN}") for part in (before, stress, after))
            before, stress, after = map(escape, unbroken)
            if clause.who and not number:  # in the colour of its line in the charts
                backend = clause.who.partition(" ")[0]
                before = f'<span style="color:{palette.backend(backend)}">\N{BLACK SQUARE}</span> {before}'
            if clause.kind == "doubtful":
                text = f'<span style="color:{theme.warning}">{before}{stress}{after}</span>'
            else:
                text = f'{before}<b style="color:{colours.get(clause.kind, ink)}">{stress}</b>{after}'
            if clause.cases:
                place = self._clauses.index(clause)
                text = f'<a href="{place}" style="color:{ink};text-decoration:none">{text}</a>'
            parts.append(escape(clause.before) * bool(number) + text)
        return "".join(parts)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if not self._hovered and event.button() == Qt.MouseButton.LeftButton:
            self._ask(next((clause for clause in self._clauses if clause.cases), None))

    def _on_hovered(self, link: str) -> None:
        self._hovered = link
        self.setCursor(Qt.CursorShape.PointingHandCursor if link else Qt.CursorShape.ArrowCursor)

    def _on_link(self, link: str) -> None:
        self._ask(self._clauses[int(link)])

    def _ask(self, clause: Clause | None) -> None:
        if clause is None or not clause.cases:
            return
        places = {case: place for place, case in enumerate(clause.cases)}
        place = places[self._last] + 1 if self._last in places else 0
        self._last = clause.cases[place % len(clause.cases)]
        self.case_wanted.emit(self._last)


MOST_BOARD = 0.3  # of the window's height, beyond which it scrolls
BOARD_SHARE = 0.6  # the share of the width that a board may have beside words
WIDEST_CELL = (
    "10.0× slower"  # each batch size has room for this from the start, so that the board does not move
)


class BesideBoard(QBoxLayout):
    """Words with the board at their right. The board stands below them if it needs most of the width and
    the window is at least HIGH pixels high; in a lower window it is as high as the words."""

    def __init__(self, words: QWidget, board: BoardView) -> None:
        super().__init__(QBoxLayout.Direction.LeftToRight)
        self._board = board
        board.words = words
        self.setSpacing(GAP)
        self.addWidget(words, 1, Qt.AlignmentFlag.AlignTop)
        self.addWidget(board, 0, Qt.AlignmentFlag.AlignTop)

    def setGeometry(self, rect: QRect) -> None:
        room = round(BOARD_SHARE * rect.width())
        low = self._board.window().height() < HIGH
        beside = low or self._board.sizeHint().width() <= room
        self._board.setMaximumWidth(room if beside else QWIDGETSIZE_MAX)
        wanted = QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom
        if wanted != self.direction():
            self.setDirection(wanted)
            self.setSpacing(GAP if beside else 0)
        super().setGeometry(rect)


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
    words: QWidget | None = None  # the widget beside it
    sortable = False
    filters = False
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
        """Show a board. None, or one without comparisons, takes no room."""
        if board == self._board:
            return
        self._board = board
        compares = board is not None and board.has_comparisons
        if board is not None and compares:
            self.show_table(scoreboard.table(board))
        self.setVisible(compares)
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
        """The size of all lines and columns, up to the board's share of the window's height."""
        frame = 2 * self.frameWidth()
        head, line = self.horizontalHeader().sizeHint().height(), self.verticalHeader().defaultSectionSize()
        high = head + self.source.rowCount() * line + frame
        if self.horizontalScrollBar().isVisible():
            high += self.horizontalScrollBar().sizeHint().height()
        whole = self.window().height()
        most = round(MOST_BOARD * whole)
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
        wide = self.fontMetrics().horizontalAdvance(WIDEST_CELL) + 2 * self.margin
        of_batch = scoreboard.batch_of(self.source.columns[place]) is not None
        return max(super().heading_width(place), wide if of_batch else 0)

    def copied(self) -> Table[Any]:
        """The numbers behind the cells, as an exported picture has them."""
        return scoreboard.numbers(self._board) if self._board is not None else self.source.table

    def markdown(self, table: Table[Any]) -> str:
        return to_markdown(self.source.table)

    # ------------------------------------------------------------------------------------------------- events

    def _on_current(self, current: QModelIndex) -> None:
        """Nothing: the user goes to cells, not to rows."""

    def _on_cell(self, current: QModelIndex) -> None:
        if not current.isValid() or self._following:
            return
        line, column = self.source.rows[current.row()], self.source.columns[current.column()]
        if (batch := scoreboard.batch_of(column)) is not None:
            self.pointed.emit(line.contender, float(batch))
