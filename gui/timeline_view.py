"""The timeline: every case's lanes one over the other on one axis of time.

The wheel zooms where the pointer is, Shift and the wheel move in time, Ctrl and the wheel scroll the lanes.
Dragging measures; dragging with Shift, with the middle button or on the axis moves. A click selects, a double
click shows what was clicked over the whole width. By keyboard: arrows, + and −, 0 for all, Z for what was
measured, N and P for the next and the previous event of the lane, Escape to let go.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QLabel, QWidget

from bench.profile_records import Event
from gui.theme import Theming
from gui.timeline_axis import TimeAxis, at_pixel
from gui.timeline_lanes import STEADY, Group, Row, Span
from gui.timeline_paint import TICKS, TITLES, Layout, Painter, Place
from gui.timeline_words import full_name, html

STEP = 60  # pixels that an arrow moves
READOUT_WIDTH = 460


class TimelineView(QAbstractScrollArea):
    """`show_groups` fills it. `picked` carries the event selected (None: none any more), `measured` the
    (start, end) in ns of what is measured, None where it was let go."""

    picked = Signal(object)
    measured = Signal(object)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theming = theming
        self.axis = TimeAxis()
        self.groups: tuple[Group, ...] = ()
        self.anchor = STEADY
        self.selected: Event | None = None
        self.measure: tuple[float, float] | None = None
        self._layout = Layout(())
        self._place: Place | None = None  # of the selected event
        self._pressed: QPointF | None = None
        self._last = QPointF()
        self._drag = ""  # "", "measure", "move"
        self.readout = QLabel(self.viewport())
        self.readout.setTextFormat(Qt.TextFormat.RichText)
        self.readout.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.readout.setMaximumWidth(READOUT_WIDTH)
        self.readout.setWordWrap(True)
        self.readout.hide()
        self.viewport().setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setAccessibleName("Timeline")
        theming.changed.connect(self.restyle)
        self.restyle()

    # ---------------------------------------------------------------------------------------------- showing

    def show_groups(self, groups: Sequence[Group], anchor: str = STEADY) -> None:
        """Show these cases, laid so that the moments `anchor` (of their anchors) are at 0."""
        same = [g.key for g in groups] == [g.key for g in self.groups] and anchor == self.anchor
        self.groups, self.anchor = tuple(groups), anchor
        self._layout = Layout(self.groups)
        self.axis.bound(
            min((g.start - g.anchor(anchor) for g in groups), default=0),
            max((g.end - g.anchor(anchor) for g in groups), default=1_000_000),
        )
        if not same:
            self._let_go()
            self.axis.fit()
        self._scrolling()
        self.viewport().update()

    def look_at(self, span: Span, group: Group) -> None:
        """Show a span of one of the groups over the whole width."""
        zero = group.anchor(self.anchor)
        self.axis.look_at(span.start_ns - zero, span.end_ns - zero)
        self.viewport().update()

    def fit(self) -> None:
        self.axis.fit()
        self.viewport().update()

    def zoom_by(self, factor: float) -> None:
        self.axis.zoom(factor, self.axis.width / 2)
        self.viewport().update()

    def zoom_to_measure(self) -> None:
        if self.measure is not None:
            self.axis.show(*sorted(self.measure))
            self.viewport().update()

    def select(self, event: Event | None) -> None:
        """Mark an event, and bring it into view; tells of it."""
        self.selected = event
        self._place = self._place_of(event)
        if event is not None and self._place is not None:
            zero = self._place.group.anchor(self.anchor)
            start, end = event.start_ns - zero, event.end_ns - zero
            if end < self.axis.start or start > self.axis.end:
                half = (self.axis.end - self.axis.start) / 2
                self.axis.show((start + end) / 2 - half, (start + end) / 2 + half)
            self._show_row(self._place)
        self.setAccessibleDescription(full_name(event) if event is not None else "")
        self.viewport().update()
        self.picked.emit(event)

    def zero_of(self, event: Event) -> int:
        """The moment (ns of the profile's clock) from which an event's times are counted."""
        place = self._place_of(event)
        return place.group.anchor(self.anchor) if place is not None else 0

    def step(self, by: int) -> None:
        """Select the event after or before the selected one in its row."""
        if self._place is None or self.selected is None:
            first = next(iter(self._layout.places), None)
            if first is not None:
                self.select(first.row.events[0])
            return
        index = _index(self._place.row, self.selected)
        events = self._place.row.events
        if index is not None and 0 <= index + by < len(events):
            self.select(events[index + by])

    def restyle(self) -> None:
        theme = self.theming.theme
        self.readout.setStyleSheet(
            f"background: {theme.window}; color: {theme.ink}; border: 1px solid {theme.line};"
            "border-radius: 3px; padding: 4px;"
        )
        self.viewport().update()

    def sizeHint(self) -> QSize:
        return QSize(700, 360)

    # ---------------------------------------------------------------------------------------------- painting

    def paintEvent(self, _: QPaintEvent) -> None:
        theme, size = self.theming.theme, self.viewport().size()
        canvas = QPainter(self.viewport())
        canvas.fillRect(self.viewport().rect(), QColor(theme.paper))
        painter = Painter(canvas, self.axis, theme, self.font())
        painter.ticks(size.height())
        scroll = self.verticalScrollBar().value()
        canvas.setClipRect(0, TICKS + 1, size.width(), size.height())
        canvas.translate(0, TICKS + 1 - scroll)
        low, high = scroll, scroll + size.height()
        canvas.save()
        canvas.setClipRect(TITLES, low, size.width() - TITLES, size.height())
        for place in self._layout.between(low, high):
            painter.row(place, place.top, place.group.anchor(self.anchor), self.selected)
        canvas.restore()
        for group, y in self._layout.heads:
            painter.head(group, y)
        for place in self._layout.between(low, high):
            if place.first:
                painter.title(place, place.top)
        canvas.resetTransform()
        canvas.setClipRect(TITLES, 0, size.width() - TITLES, size.height())
        if self.measure is not None:
            painter.measure(*self.measure, size.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._scrolling()

    def _scrolling(self) -> None:
        size = self.viewport().size()
        self.axis.width = max(1.0, size.width() - TITLES)
        bar, room = self.verticalScrollBar(), size.height() - TICKS - 1
        bar.setRange(0, max(0, round(self._layout.height) - room))
        bar.setPageStep(max(1, room))
        bar.setSingleStep(20)

    # ---------------------------------------------------------------------------------------------- pointing

    def event_at(self, at: QPointF) -> tuple[Event, Place] | None:
        """What lies at a place of the viewport."""
        if at.x() < TITLES or at.y() <= TICKS:
            return None
        place = self._layout.at(at.y() - TICKS - 1 + self.verticalScrollBar().value())
        if place is None:
            return None
        index = at_pixel(place.row, self.axis, place.group.anchor(self.anchor), at.x() - TITLES)
        return (place.row.events[index], place) if index is not None else None

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
                self._let_go()
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

    def leaveEvent(self, event: QEvent) -> None:
        self.readout.hide()
        super().leaveEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
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
            self._let_go()
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

    def _place_of(self, event: Event | None) -> Place | None:
        if event is None:
            return None
        return next((p for p in self._layout.places if _index(p.row, event) is not None), None)

    def _let_go(self) -> None:
        self.measure = None
        self.measured.emit(None)
        self.select(None)

    def _show_row(self, place: Place) -> None:
        bar, room = self.verticalScrollBar(), self.viewport().height() - TICKS - 1
        if not bar.value() <= place.top <= bar.value() + room - place.height:
            bar.setValue(round(place.top - room / 2))

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


def _index(row: Row, event: Event) -> int | None:
    """The place of this very event in a row, None where it is not in it."""
    first = int(np.searchsorted(row.starts, event.start_ns, "left"))
    last = int(np.searchsorted(row.starts, event.start_ns, "right"))
    return next((i for i in range(first, last) if row.events[i] is event), None)
