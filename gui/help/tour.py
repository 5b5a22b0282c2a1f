"""The tour of the first start: five steps over the window, each beside what it speaks of; it can be left at
any of them, and taken again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from gui.base.boxes import filled, fitting_height
from gui.base.theme import Theming
from gui.widgets.labels import Label, Linked

SEEN = "tour/seen"
CARD_WIDTH = 380
GAP = 14


@dataclass(frozen=True)
class TourStep:
    """text: with marked words (bench.words.glossary). target: what it stands beside, None for the middle;
    begin: brings that to the front."""

    title: str
    text: str
    target: Callable[[], QWidget | None]
    begin: Callable[[], object] = lambda: None


class Tour(QWidget):
    """Covers `window` while it is shown. `ended` carries whether it was seen to its end."""

    KEYS: ClassVar = {"→, Enter": "Next step of the tour", "←": "Step before", "Esc": "Leave the tour"}
    ended = Signal(bool)

    def __init__(self, window: QWidget, theming: Theming, steps: Sequence[TourStep]) -> None:
        super().__init__(window)
        self._window = window
        self._theming = theming
        self._steps = tuple(steps)
        self.at = 0
        self._hole = QRect()
        self.setAccessibleName("Tour")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.card = QFrame(self)
        self.card.setProperty("role", "card")
        self.count = Label()
        self.count.setProperty("role", "muted")
        self.title = Label()
        self.title.setProperty("role", "heading")
        font = self.title.font()
        font.setPointSizeF(font.pointSizeF() * 1.25)
        self.title.setFont(font)
        self.words = Linked()
        self.skip = QPushButton("Skip the tour")
        self.skip.clicked.connect(lambda: self._end(False))
        self.back = QPushButton("Back")
        self.back.clicked.connect(lambda: self.go(self.at - 1))
        self.next = QPushButton("Next")
        self.next.setProperty("role", "primary")
        self.next.clicked.connect(lambda: self.go(self.at + 1))
        buttons = filled(QHBoxLayout(), self.skip, 1, self.back, self.next, spacing=8)
        filled(
            QVBoxLayout(self.card),
            self.count,
            self.title,
            self.words,
            buttons,
            margins=(18, 14, 18, 14),
            spacing=8,
        )
        self.card.setFixedWidth(CARD_WIDTH)
        self.hide()
        window.installEventFilter(self)

    def start(self) -> None:
        self.setGeometry(self._window.rect())
        self.show()
        self.raise_()
        self.go(0)

    def go(self, at: int) -> None:
        """To a step; beyond the last one it ends."""
        if at >= len(self._steps):
            self._end(True)
            return
        self.at = max(0, at)
        step, last = self._steps[self.at], self.at == len(self._steps) - 1
        step.begin()
        self.raise_()  # whatever that brought to the front
        self.count.setText(f"{self.at + 1} of {len(self._steps)}")
        self.title.setText(step.title)
        self.words.setText(step.text)
        self.back.setEnabled(self.at > 0)
        self.skip.setVisible(not last)
        self.next.setText("Begin" if last else "Next")
        self.setAccessibleDescription(f"{step.title}: {self.words.accessibleName()}")
        self.next.setFocus()
        self._place()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and watched is self._window and self.isVisible():
            self.setGeometry(self._window.rect())
            self._place()
        return False

    def event(self, event: QEvent) -> bool:
        # While it is shown keys are its own, also those that the window has uses for.
        if event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Escape:
                self._end(False)
            case Qt.Key.Key_Right | Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self.go(self.at + 1)
            case Qt.Key.Key_Left:
                self.go(self.at - 1)
            case _:
                event.ignore()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()  # nothing below is touched by mistake

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        path = QPainterPath()
        path.addRect(QRectF(self.rect()))
        if not self._hole.isNull():
            hole = QPainterPath()
            hole.addRoundedRect(QRectF(self._hole), 6, 6)
            path = path.subtracted(hole)
        veil = QColor("#000000")
        veil.setAlphaF(0.55 if self._theming.theme.dark else 0.38)
        painter.fillPath(path, veil)
        if not self._hole.isNull():
            painter.setPen(QPen(QColor(self._theming.theme.accent), 2))
            painter.drawRoundedRect(QRectF(self._hole), 6, 6)

    # ------------------------------------------------------------------------------------------ the inside

    def _end(self, whole: bool) -> None:
        self.hide()
        self._window.removeEventFilter(self)
        self.ended.emit(whole)
        self.deleteLater()

    def _place(self) -> None:
        """The card beside its target, where there is most room; in the middle where there is no target."""
        target = self._steps[self.at].target()
        self._hole = QRect()
        self.card.resize(CARD_WIDTH, fitting_height(self.card, CARD_WIDTH))
        size, room = self.card.size(), self.rect()
        spot = QPoint((room.width() - size.width()) // 2, (room.height() - size.height()) // 2)
        if target is not None and target.isVisible():
            top_left = target.mapTo(self._window, QPoint(0, 0))
            self._hole = QRect(top_left, target.size()).adjusted(-4, -4, 4, 4) & room
            hole = self._hole
            across = min(max(GAP, hole.left()), room.width() - size.width() - GAP)
            along = min(max(GAP, hole.top()), room.height() - size.height() - GAP)
            if room.right() - hole.right() >= size.width() + 2 * GAP:
                spot = QPoint(hole.right() + GAP, along)
            elif hole.left() >= size.width() + 2 * GAP:
                spot = QPoint(hole.left() - GAP - size.width(), along)
            elif room.bottom() - hole.bottom() >= size.height() + 2 * GAP:
                spot = QPoint(across, hole.bottom() + GAP)
            elif hole.top() >= size.height() + 2 * GAP:
                spot = QPoint(across, hole.top() - GAP - size.height())
        self.card.move(spot)
        self.update()
