"""The three answers of each model (bench.views.cards) as a row of cells: right, how fast, held back by. A
click on a cell goes to its points, one after another; what is behind it is its tooltip. Between them stands
the scoreboard of the model."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QColor, QEnterEvent, QFont, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QGridLayout, QSizePolicy, QWidget

from bench.results.records import Case
from bench.results.rows import title
from bench.views.cards import FAST, HELD, NOTHING, RIGHT, Answer, Card
from gui.base.boxes import ScrollArea, as_row, flowing
from gui.base.theme import GAP, ROUND, TIGHT, Theming, points, resized, scaled, write
from gui.widgets.board_view import BoardView, align
from gui.widgets.controls import Elided, Label, as_tip, context_menu, new_action

MOST = 0.34  # of the window's height, beyond which the cards scroll
LOW, REST = 800, 440  # pixels of a low window, and of what charts, legend and table need in it
GO = "Click to go to its points, and again for the next of them"
NAME_MOST, TEXT_MOST, WIDE_MOST = 170, 300, 330  # pixels of a name, of an answer, of one in a line
ANY_WIDTH = (1 << 24) - 1  # Qt's own: no most
NAME_LEAST = 126  # of a name: where room is short the scoreboard gives it
# What an answer is of stands once, above all of them.
HEADINGS = {RIGHT: RIGHT, FAST: f"{FAST}\nwithout copies", HELD: f"{HELD}\ncopies included"}
LARGER = {FAST: 1.45}  # times the size of the text around it, where it is decided; others are ANSWER
ANSWER = 1.1
DECIDED = ("good", "bad")  # roles of what is sure
INKS = {"good": "good", "bad": "failed", "warn": "warning"}  # colours of the theme, by an answer's role
USUAL = {
    RIGHT: ("✓ same answers", "360 images, accuracy 97.78 %"),
    FAST: ("2.22–22.2×", "engine-cuda slower than ort-cuda"),
    HELD: ("copy out, 99 %", "batch 256"),
}


class _Cell(QAbstractButton):
    """A text and a smaller one below it, painted, so that neither pushes its neighbours about."""

    def __init__(
        self, theming: Theming, larger: float = ANSWER, most: int = TEXT_MOST, least: int = 60
    ) -> None:
        super().__init__()
        self._theming = theming
        self._larger, self._most, self._least = larger, most, least
        self._detail = self._more = ""
        self._role = ""
        self._over = False
        self._hinted: object = None  # what the hint was made of: making it takes long
        self._hint = QSize()
        self.marked = False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        theming.changed.connect(self.update)

    def tell(
        self, text: str, detail: str = "", role: str = "", name: str = "", tip: str = "", more: str = ""
    ) -> None:
        """role: a colour of the theme, "" for that of text; name: for a screen reader, before the text; more:
        what the detail goes on with where there is room."""
        now = text, detail, role, more
        if now != (self.text(), self._detail, self._role, self._more):
            self.setText(text)
            self._detail, self._role, self._more = detail, role, more
            self.updateGeometry()
            self.update()
        self.setAccessibleName(" ".join(filter(None, [name, text, detail])))
        self.setAccessibleDescription(tip)
        self.setToolTip(as_tip(tip))

    def show_answer(self, question: str, answer: Answer) -> None:
        larger = LARGER.get(question, ANSWER) if answer.role in DECIDED else ANSWER
        if larger != self._larger:
            self._larger, self._hinted = larger, None
        tip = "\n".join(filter(None, [answer.why, GO if answer.cases else ""]))
        self.tell(answer.text, answer.detail, INKS.get(answer.role, ""), question, tip, answer.more)
        self.setEnabled(bool(answer.cases))

    @property
    def words(self) -> str:
        """All that is shown."""
        return " ".join(filter(None, [self.text(), self._detail]))

    @property
    def ink(self) -> str:
        """The colour of the text."""
        return str(getattr(self._theming.theme, self._role or "ink"))

    @property
    def is_cut(self) -> bool:
        """Whether the text does not fit."""
        return QFontMetricsF(self._fonts()[0]).horizontalAdvance(self.text()) > self.width() - 2 * GAP + 1

    def _fonts(self) -> tuple[QFont, QFont]:
        small = QFont(self.font())
        small.setPointSizeF(points("caption"))
        return resized(self.font(), self._larger, bold=True), small

    @property
    def is_whole(self) -> bool:
        """Whether there is room for all that must be said."""
        return self.width() >= min(scaled(self._most), self._width_of(self._detail))

    def sizeHint(self) -> QSize:
        now = self.text(), self._detail, self._more, self.font().pointSizeF(), scaled(self._most)
        if now != self._hinted:
            self._hinted, self._hint = now, self._wanted()
        return self._hint

    def _wanted(self) -> QSize:
        large, small = (QFontMetricsF(font) for font in self._fonts())
        high = large.height() + small.height() + 2 * TIGHT
        return QSize(min(scaled(self._most), self._width_of(self._longest)), round(high))

    @property
    def _longest(self) -> str:
        return ": ".join(filter(None, [self._detail, self._more]))

    def _width_of(self, detail: str) -> int:
        large, small = (QFontMetricsF(font) for font in self._fonts())
        return round(max(large.horizontalAdvance(self.text()), small.horizontalAdvance(detail))) + 2 * GAP + 2

    def minimumSizeHint(self) -> QSize:
        hint = self.sizeHint()
        return QSize(min(scaled(self._least), hint.width()), hint.height())

    def enterEvent(self, event: QEnterEvent) -> None:
        self._over = True
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        self._over = False
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = self._theming.theme, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        inside = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        if (self._over and self.isEnabled()) or self.isDown():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.alternate))
            painter.drawRoundedRect(inside, ROUND, ROUND)
        if self.hasFocus():
            painter.setPen(QColor(theme.accent))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(inside, ROUND, ROUND)
        if self.marked:
            painter.fillRect(QRectF(0, TIGHT, 3, self.height() - 2 * TIGHT), QColor(theme.accent))
        large, small = self._fonts()
        high, low = QFontMetricsF(large).height(), QFontMetricsF(small).height()
        top = (self.height() - high - low * bool(self._detail)) / 2
        wide = self.width() - 2 * GAP
        painter.setFont(large)
        write(painter, QRectF(GAP, top, wide, high), self.text(), self.ink)
        painter.setFont(small)
        whole = QFontMetricsF(small).horizontalAdvance(self._longest) <= wide
        write(
            painter, QRectF(GAP, top + high, wide, low), self._longest if whole else self._detail, theme.muted
        )


class AnswersRow(QWidget):
    """The three answers to one thing in a line: what a page opens with. `picked` carries what an answer is
    about, one after another."""

    picked = Signal(object)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown: object = None
        self._answers: Mapping[str, Answer] = {}
        self._last: object = None
        self._text = ""
        self.who = Elided(role="heading")
        self.who.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._fit_name()
        theming.changed.connect(self._fit_name)
        self.cells = {question: _Cell(theming, ANSWER, most=WIDE_MOST) for question in (RIGHT, FAST, HELD)}
        pairs = [as_row(Label(question, role="caption"), cell) for question, cell in self.cells.items()]
        flowing(self, self.who, *pairs, spacing=GAP)
        for question, cell in self.cells.items():
            cell.clicked.connect(lambda _=False, of=question: self._go(of))
        self.copy_action = new_action(self, "&Copy as text", self.copy)
        for widget in (self, *self.cells.values()):
            context_menu(widget, lambda: [self.copy_action])

    def show_answers(self, who: str, answers: Mapping[str, Answer], text: str) -> None:
        """who: whom they are about; text: all of it as a sentence."""
        now = who, answers, text
        if now == self._shown:
            return
        self._shown, self._answers, self._text = now, answers, text
        self.who.setText(who)
        self._fit_name()
        self.who.setVisible(bool(who))
        for question, cell in self.cells.items():
            cell.show_answer(question, answers.get(question, Answer(NOTHING)))

    def _fit_name(self) -> None:
        words = self.who.fontMetrics().horizontalAdvance(f"{self.who.text()} ")
        self.who.setFixedWidth(min(words + GAP, scaled(NAME_MOST)))

    def copy(self) -> None:
        """Put the sentence on the clipboard."""
        QApplication.clipboard().setText(self._text)

    def _go(self, question: str) -> None:
        self._last = next_of(self._answers[question].cases, self._last)
        self.picked.emit(self._last)


def next_of(places: Sequence[Any], last: Any) -> Any:
    """The place behind the last one; the first, if that was none of them."""
    at = places.index(last) + 1 if last in places else 0
    return places[at % len(places)]


class CardsView(ScrollArea):
    """The cards of a run. `picked` carries the Case of a point that a cell is about; `model_wanted` the model
    and the precision of a card whose name was pressed; `pointed` the model, the contender and the batch size
    of a cell of a scoreboard."""

    picked = Signal(object)
    model_wanted = Signal(str, str)
    pointed = Signal(str, str, float)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__("Right, how fast, held back by", False, parent)
        self._theming = theming
        self._cards: tuple[Card, ...] = ()
        self._last: Case | None = None
        self._inside = QWidget()
        self._grid = QGridLayout(self._inside)
        self._grid.setContentsMargins(0, 0, 0, TIGHT)
        self._grid.setHorizontalSpacing(TIGHT)
        self._grid.setVerticalSpacing(TIGHT)
        self.where = Elided(role="caption")  # on what machine all of it was measured
        self.where.setMaximumWidth(NAME_MOST)
        self._grid.addWidget(self.where, 0, 0, Qt.AlignmentFlag.AlignBottom)
        self.headings = [Label(words, role="caption") for words in HEADINGS.values()]
        for heading, place in zip(self.headings, (1, 2, 4), strict=True):
            heading.setContentsMargins(GAP, 0, 0, 0)
            self._grid.addWidget(heading, 0, place, Qt.AlignmentFlag.AlignBottom)
        self._grid.setColumnStretch(5, 1)
        self._reserved: dict[int, int] = {}  # pixels of the columns
        self._rows: list[_Row] = []
        self._reserve()
        theming.changed.connect(self._reserve)
        self.copy_action = new_action(self, "&Copy as text", self.copy)
        context_menu(self, self._offered)
        self.setWidget(self._inside)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def _offered(self) -> Sequence[QAction]:
        return [self.copy_action]

    @property
    def rows(self) -> Sequence[_Row]:
        return self._rows

    @property
    def texts(self) -> list[str]:
        """The sentences behind the cards, as they are copied."""
        return [card.text for card in self._cards]

    def copy(self) -> None:
        """Put the sentences on the clipboard."""
        QApplication.clipboard().setText("\n\n".join(self.texts))

    def show_cards(self, cards: Sequence[Card], model: str, precision: str) -> None:
        """Show a row for each card. model, precision: of the one whose charts are shown below."""
        if tuple(cards) != self._cards:
            self._cards = tuple(cards)
            while len(self._rows) < len(cards):
                self._rows.append(_Row(self, self._grid, len(self._rows) + 1, self._theming))
            for row in self._rows[len(cards) :]:
                row.remove()
            del self._rows[len(cards) :]
            for row, card in zip(self._rows, cards, strict=True):
                row.show_card(card)
            align([row.board for row in self._rows])
            self._give_room()
            self._fit()
            QTimer.singleShot(0, self, self._fit)  # new widgets have their letters by then
        several = len(cards) > 1
        for row in self._rows:
            shown = row.card.verdict
            row.mark(several and shown.model == model and precision in ("", shown.precision))

    def point_at(self, case: Case | None, contender: str) -> None:
        """Mark the cell of what was selected elsewhere."""
        for row in self._rows:
            own = case is not None and row.card.verdict.model == case.model
            row.board.point_at(contender if own else "", case.batch if case is not None else 0)

    def go(self, cases: Sequence[Case]) -> None:
        """Go to the first of these points, or from one of them to the next."""
        if cases:
            self._last = next_of(cases, self._last)
            self.picked.emit(self._last)

    def sizeHint(self) -> QSize:
        return QSize(200, self.height())

    def minimumSizeHint(self) -> QSize:
        return QSize(120, 0)

    def _reserve(self) -> None:
        """Keep room for what most models say, from the start: nothing moves when it comes."""
        for place, (question, usual) in zip((1, 2, 4), USUAL.items(), strict=True):
            cell = _Cell(self._theming, LARGER.get(question, ANSWER))
            cell.tell(*usual)
            self._reserved[place] = cell.sizeHint().width()
        self._give_room()

    def _give_room(self) -> None:
        """Answers are cut last: the scoreboards, whose figures the charts have too, give way to them."""
        names = max((row.name.minimumSizeHint().width() for row in self._rows), default=0)
        rest = self.viewport().width() - names - sum(self._reserved.values()) - 5 * TIGHT
        boards = [row.board for row in self._rows if not row.board.isHidden()]
        short = max((board.least_width for board in boards), default=0) - rest
        for place, width in self._reserved.items():
            # A board that lacks a few pixels has them from what these answers do not need: else it scrolls.
            needed = max((row.asks(place) for row in self._rows), default=width)
            given = min(max(0, short), max(0, width - needed))
            short, rest = short - given, rest + given
            self._grid.setColumnMinimumWidth(place, width - given if rest >= 0 else 0)
        for board in (row.board for row in self._rows):
            fits = rest >= board.minimumSizeHint().width()
            board.setMaximumWidth(ANY_WIDTH if fits else 0)
            # All its batch sizes, before the names and what surrounds them have more than they need.
            board.setMinimumWidth(min(rest, board.least_width) if fits else 0)

    def _fit(self) -> None:
        """Set the height: that of all rows, or of as many whole ones as the cards' share of the window holds,
        at least the first."""
        self._grid.activate()
        wanted, page = self._grid.sizeHint().height(), self.parentWidget()
        room = round(MOST * self.window().height())
        if self.window().height() < LOW and page is not None:
            room = page.height() - REST
        if wanted > room:
            head = max(each.sizeHint().height() for each in (self.where, *self.headings))
            ends = list(
                itertools.accumulate((row.height + TIGHT for row in self._rows), initial=head + TIGHT)
            )
            wanted = max((end for end in ends[1:] if end <= room), default=min(ends[1:], default=wanted))
        self.setFixedHeight(max(1, wanted))

    def resizeEvent(self, event: object) -> None:
        super().resizeEvent(event)  # type: ignore[arg-type]
        self._give_room()
        self._fit()


class _Row:
    """The widgets of one card, in a line of the grid."""

    def __init__(self, view: CardsView, grid: QGridLayout, line: int, theming: Theming) -> None:
        self.card: Card
        self.name = _Cell(theming, most=NAME_MOST, least=NAME_LEAST)
        self.name.clicked.connect(lambda: view.model_wanted.emit(*self._of))
        self.cells = {
            question: _Cell(theming, LARGER.get(question, ANSWER)) for question in (RIGHT, FAST, HELD)
        }
        for question, cell in self.cells.items():
            cell.clicked.connect(lambda _=False, of=question: view.go(self.card.answers[of].cases))
        self.board = BoardView(theming)
        self.board.pointed.connect(lambda who, batch: view.pointed.emit(self._of[0], who, batch))
        self.board.addAction(view.copy_action)
        places = (self.name, self.cells[RIGHT], self.cells[FAST], self.board, self.cells[HELD])
        self._widgets: tuple[QWidget, ...] = places
        for place, widget in enumerate(places):
            grid.addWidget(widget, line, place, Qt.AlignmentFlag.AlignVCenter)
            if widget is not self.board:  # it has a menu of its own
                context_menu(widget, lambda: [view.copy_action])

    @property
    def _of(self) -> tuple[str, str]:
        return self.card.verdict.model, self.card.verdict.precision

    @property
    def height(self) -> int:
        """What all of it needs, in pixels."""
        return max(each.sizeHint().height() for each in self._widgets if not each.isHidden())

    def asks(self, place: int) -> int:
        """The width of the answer in this column of the grid, in pixels."""
        return self._widgets[place].sizeHint().width()

    def show_card(self, card: Card) -> None:
        self.card = card
        verdict = card.verdict
        self.name.tell(title(verdict.model), verdict.precision, tip=verdict.line or "nothing is measured yet")
        for question, answer in card.answers.items():
            self.cells[question].show_answer(question, answer)
        self.board.setAccessibleName(f"Scoreboard of {title(verdict.model)}")
        self.board.show_board(verdict.board)

    def mark(self, on: bool) -> None:
        """on: whether this is the model whose charts are shown."""
        if on != self.name.marked:
            self.name.marked = on
            self.name.update()

    def remove(self) -> None:
        for widget in self._widgets:
            widget.hide()
            widget.deleteLater()
