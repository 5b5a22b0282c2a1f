"""The timeline: every case's lanes one over the other on one axis of time.

The wheel zooms where the pointer is, Shift and the wheel move in time, Ctrl and the wheel scroll the lanes.
Dragging measures; dragging with Shift, with the middle button or on the axis moves. A click selects, a double
click shows what was clicked over the whole width. By keyboard: arrows, + and −, 0 for all, Z for what was
measured, N and P for the next and the previous event of the lane, Ctrl+C to copy what is known of the one
that is selected, Escape to let go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QMenu, QWidget

from bench.results.events import Activity, ApiCall, Event
from gui.base.theme import Theming
from gui.pages.timeline.timeline_axis import TimeAxis, at_pixel
from gui.pages.timeline.timeline_paint import TICKS, TITLES, Painter, TimelineLayout, TimelinePlace
from gui.pages.timeline.timeline_words import facts, full_name, html
from gui.sessions.timeline_lanes import STEADY, LaneGroup, LaneRow, Span
from gui.widgets.labels import Readout

MOST_ARROWS = 200  # of a call that started a whole graph
STEP = 60  # pixels that an arrow moves
READOUT_WIDTH = 460


class TimelineView(QAbstractScrollArea):
    """Cases one over the other, an event selected with what it started or was started by, a range measured.
    `show_groups` fills it. `picked` carries the event selected (None: none any more), `measured` the (start,
    end) in ns of what is measured, None where it was let go."""

    picked = Signal(object)
    measured = Signal(object)

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
        super().__init__(parent)
        self.theming = theming
        self.axis = TimeAxis()
        self.groups: tuple[LaneGroup, ...] = ()
        self.anchor = STEADY
        self.selected: Event | None = None
        self.measure: tuple[float, float] | None = None
        self._layout = TimelineLayout(())
        self._place: TimelinePlace | None = None  # of the selected event
        self._partners: list[tuple[Activity | ApiCall, TimelinePlace]] = []
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setAccessibleName("Timeline")
        self._pressed: QPointF | None = None
        self._last = QPointF()
        self._drag = ""  # "", "measure?", "measure", "move?", "move"
        self.readout = Readout(theming, self.viewport())
        self.readout.setMaximumWidth(READOUT_WIDTH)
        self.readout.setWordWrap(True)
        self.viewport().setMouseTracking(True)
        self.axis.moved = self.viewport().update
        theming.changed.connect(self.viewport().update)

    # ---------------------------------------------------------------------------------------------- showing

    def show_groups(self, groups: Sequence[LaneGroup], anchor: str = STEADY) -> None:
        """Show these cases, laid so that the moments `anchor` (of their anchors) are at 0."""
        same = [g.key for g in groups] == [g.key for g in self.groups] and anchor == self.anchor
        self.groups, self.anchor = tuple(groups), anchor
        self._layout = TimelineLayout(self.groups)
        self.axis.bound(
            min((g.start - g.anchor(anchor) for g in groups), default=0),
            max((g.end - g.anchor(anchor) for g in groups), default=1_000_000),
        )
        if not same:
            self.let_go()
            self.axis.fit()
        self._scrolling()
        self.viewport().update()

    def look_at(self, span: Span, group: LaneGroup) -> None:
        """Show a span of one of the groups over the whole width."""
        zero = group.anchor(self.anchor)
        self.axis.look_at(span.start_ns - zero, span.end_ns - zero)

    def fit(self) -> None:
        self.axis.fit()

    def zoom_by(self, factor: float) -> None:
        self.axis.zoom(factor, self.axis.width / 2)

    def zoom_to_measure(self) -> None:
        if self.measure is not None:
            self.axis.show(*sorted(self.measure))

    def select(self, event: Event | None) -> None:
        """Mark an event, and bring it into view; tells of it."""
        self.selected = event
        self._place = self.place_of(event)
        self._partners = self._started(event)
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
        place = self.place_of(event)
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

    def words(self, event: Event) -> str:
        """All that is known of an event, in a line."""
        known = ", ".join(f"{what} {value}".strip() for what, value in facts(event, self.zero_of(event)))
        return f"{full_name(event)}: {known}"

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
        if self.selected is not None and self._place is not None:
            zero = self._place.group.anchor(self.anchor)
            painter.mark(self.selected.start_ns - zero, self.selected.end_ns - zero, self._place)
            for partner, place in self._partners:
                ends = ((self.selected, self._place), (partner, place))
                call, started = ends if isinstance(self.selected, ApiCall) else ends[::-1]
                painter.arrow(call[0].start_ns - zero, call[1], started[0].start_ns - zero, started[1])
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
        if self.hasFocus():
            canvas.setClipping(False)
            canvas.setPen(QColor(theme.accent))
            canvas.drawRect(self.viewport().rect().adjusted(0, 0, -1, -1))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._scrolling()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.viewport().update()

    def _scrolling(self) -> None:
        size = self.viewport().size()
        self.axis.width = max(1.0, size.width() - TITLES)
        bar, room = self.verticalScrollBar(), size.height() - TICKS - 1
        bar.setRange(0, max(0, round(self._layout.height) - room))
        bar.setPageStep(max(1, room))
        bar.setSingleStep(20)

    # ---------------------------------------------------------------------------------------------- finding

    def event_at(self, at: QPointF) -> tuple[Event, TimelinePlace] | None:
        """What lies at a place of the viewport."""
        if at.x() < TITLES or at.y() <= TICKS:
            return None
        place = self._layout.at(at.y() - TICKS - 1 + self.verticalScrollBar().value())
        if place is None:
            return None
        index = at_pixel(place.row, self.axis, place.group.anchor(self.anchor), at.x() - TITLES)
        return (place.row.events[index], place) if index is not None else None

    def place_of(self, event: Event | None) -> TimelinePlace | None:
        """The row that an event lies in."""
        if event is None:
            return None
        return next((p for p in self._layout.places if _index(p.row, event) is not None), None)

    def let_go(self) -> None:
        """Select and measure nothing."""
        self.measure = None
        self.measured.emit(None)
        self.select(None)

    def _show_row(self, place: TimelinePlace) -> None:
        bar, room = self.verticalScrollBar(), self.viewport().height() - TICKS - 1
        if not bar.value() <= place.top <= bar.value() + room - place.height:
            bar.setValue(round(place.top - room / 2))

    def _started(self, event: Event | None) -> list[tuple[Activity | ApiCall, TimelinePlace]]:
        """What a call started, or the call that started an activity, of the same case."""
        if self._place is None or not isinstance(event, Activity | ApiCall) or not event.correlation:
            return []
        wanted = Activity if isinstance(event, ApiCall) else ApiCall
        found = []
        for place in self._layout.places:
            if place.group is self._place.group and isinstance(place.row.events[0], wanted):
                found += [
                    (other, place)
                    for other in place.row.events
                    if isinstance(other, wanted) and other.correlation == event.correlation
                ]
        return found[:MOST_ARROWS]

    # ------------------------------------------------------------------------------------- mouse and keys

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


def _index(row: LaneRow, event: Event) -> int | None:
    """The place of this very event in a row, None where it is not in it."""
    first = int(np.searchsorted(row.starts, event.start_ns, "left"))
    last = int(np.searchsorted(row.starts, event.start_ns, "right"))
    return next((i for i in range(first, last) if row.events[i] is event), None)
