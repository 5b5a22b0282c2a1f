"""The timeline: every case's lanes one over the other on one axis of time.

The wheel zooms where the pointer is, Shift and the wheel move in time, Ctrl and the wheel scroll the lanes.
Dragging measures; dragging with Shift, with the middle button or on the axis moves. A click selects, a double
click shows what was clicked over the whole width. By keyboard: arrows, + and −, 0 for all, Z for what was
measured, N and P for the next and the previous event of the lane, Ctrl+C to copy what is known of the one
that is selected, Escape to let go.
"""

from __future__ import annotations

from typing import ClassVar

from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QKeySequence, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QMenu, QWidget

from gui.base.theme import Theming
from gui.pages.timeline.timeline_canvas import TimelineCanvas
from gui.pages.timeline.timeline_paint import TICKS, TITLES
from gui.pages.timeline.timeline_words import html
from gui.widgets.labels import Label

STEP = 60  # pixels that an arrow moves
READOUT_WIDTH = 460


class TimelineView(TimelineCanvas):
    """The canvas in the hands of the user."""

    KEYS: ClassVar = {
        "←, →": "Earlier and later on the timeline",
        "↑, ↓": "Scroll the lanes",
        "+, −": "Zoom the timeline",
        "0, Home": "The whole timeline",
        "N, P": "Next and previous event",
        "Z": "Zoom to the measured span",
        "Ctrl+C": "Copy the event selected",
        "Esc": "Let go of what is measured or selected",
    }

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(theming, parent)
        self._pressed: QPointF | None = None
        self._last = QPointF()
        self._drag = ""  # "", "measure?", "measure", "move?", "move"
        self.readout = Label(parent=self.viewport())
        self.readout.setTextFormat(Qt.TextFormat.RichText)
        self.readout.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.readout.setMaximumWidth(READOUT_WIDTH)
        self.readout.setWordWrap(True)
        self.readout.hide()
        self.viewport().setMouseTracking(True)
        self.restyle()

    def restyle(self) -> None:
        theme = self.theming.theme
        self.readout.setStyleSheet(
            f"background: {theme.window}; color: {theme.ink}; border: 1px solid {theme.line};"
            "border-radius: 3px; padding: 4px;"
        )
        super().restyle()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._pressed = self._last = event.position()
        moving = event.button() == Qt.MouseButton.MiddleButton or event.position().y() <= TICKS
        moving = moving or bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        self._drag = "move?" if moving else "measure?"
        self.readout.hide()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at = event.position()
        if self._pressed is None or not event.buttons():
            self._hover(at)
            return
        if self._drag.endswith("?"):
            if (at - self._pressed).manhattanLength() < QApplication.startDragDistance():
                return
            self._drag = self._drag[:-1]
        if self._drag == "move":
            self.axis.pan(at.x() - self._last.x())
            self.verticalScrollBar().setValue(
                self.verticalScrollBar().value() - round(at.y() - self._last.y())
            )
        elif self._drag == "measure":
            start, end = (self._snapped(p) for p in (self._pressed, at))
            self.measure = (start, end)
            self.measured.emit(tuple(sorted(self.measure)))
        self._last = at
        self.viewport().update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._drag.endswith("?") and event.button() == Qt.MouseButton.LeftButton:
            found = self.event_at(event.position())
            if found is None and self.measure is not None:
                self.let_go()
            else:
                self.select(found[0] if found is not None else None)
        self._pressed, self._drag = None, ""

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        found = self.event_at(event.position())
        if found is None:
            self.fit()
            return
        happened, place = found
        zero = place.group.anchor(self.anchor)
        self.axis.look_at(happened.start_ns - zero, happened.end_ns - zero)
        self.viewport().update()

    def wheelEvent(self, event: QWheelEvent) -> None:
        turn = event.angleDelta().y() or event.angleDelta().x()
        modifiers = event.modifiers()
        if modifiers & Qt.KeyboardModifier.ControlModifier:
            self.verticalScrollBar().setValue(self.verticalScrollBar().value() - turn // 3)
        elif modifiers & Qt.KeyboardModifier.ShiftModifier or not event.angleDelta().y():
            self.axis.pan(turn / 2)
        else:
            self.axis.zoom(1.0015**turn, event.position().x() - TITLES)
        self.readout.hide()
        self.viewport().update()
        event.accept()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        for words, do, able in (
            ("&Copy the details of the selection", self.copy_words, self.selected is not None),
            ("Copy as &picture", self.copy_picture, bool(self.groups)),
            ("Zoom to the &measured span", self.zoom_to_measure, self.measure is not None),
            ("Show &everything", self.fit, True),
        ):
            action = menu.addAction(words)
            action.triggered.connect(do)
            action.setEnabled(able)
        menu.addSeparator()
        menu.addActions(self.actions())  # to the other pages
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(event.globalPos())

    def copy_words(self) -> None:
        if self.selected is not None:
            QApplication.clipboard().setText(self.words(self.selected))

    def copy_picture(self) -> None:
        self.readout.hide()
        QApplication.clipboard().setPixmap(self.viewport().grab())

    def leaveEvent(self, event: QEvent) -> None:
        self.readout.hide()
        super().leaveEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy) and self.selected is not None:
            self.copy_words()
            return
        key, bar = Qt.Key(event.key()), self.verticalScrollBar()
        if key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.axis.pan(STEP if key == Qt.Key.Key_Left else -STEP)
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            bar.setValue(bar.value() + (STEP if key == Qt.Key.Key_Down else -STEP) // 3)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus):
            self.zoom_by(1 / 1.5 if key == Qt.Key.Key_Minus else 1.5)
        elif key in (Qt.Key.Key_0, Qt.Key.Key_Home):
            self.axis.fit()
        elif key == Qt.Key.Key_Z:
            self.zoom_to_measure()
        elif key in (Qt.Key.Key_N, Qt.Key.Key_P):
            self.step(1 if key == Qt.Key.Key_N else -1)
        elif key == Qt.Key.Key_Escape and (self.measure is not None or self.selected is not None):
            self.let_go()
        else:
            super().keyPressEvent(event)
            return
        self.viewport().update()

    def _snapped(self, at: QPointF) -> float:
        """The moment at a place; an edge of an event that is near is taken."""
        moment = self.axis.time(min(max(at.x() - TITLES, 0.0), self.axis.width))
        found = self.event_at(at)
        if found is None:
            return moment
        happened, place = found
        zero = place.group.anchor(self.anchor)
        edge = min((happened.start_ns - zero, happened.end_ns - zero), key=lambda t: abs(t - moment))
        return edge if abs(edge - moment) * self.axis.scale <= 5 else moment

    def _hover(self, at: QPointF) -> None:
        found = self.event_at(at)
        if found is None:
            self.readout.hide()
            return
        event, place = found
        self.readout.setText(html(event, place.group.anchor(self.anchor), self.theming.theme))
        self.readout.adjustSize()
        size, room = self.readout.sizeHint(), self.viewport().size()
        x, y = at.x() + 16, at.y() + 18
        if x + size.width() > room.width() - 4:
            x = max(4.0, at.x() - 12 - size.width())
        self.readout.move(round(x), round(max(4.0, min(y, room.height() - size.height() - 4))))
        self.readout.resize(size)
        self.readout.show()
        self.readout.raise_()
