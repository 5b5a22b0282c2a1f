"""What a timeline shows: cases one over the other, a span of the axis, an event selected with what it
started or was started by, a range measured. The hands of the user are gui.pages.timeline.timeline_view's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from bench.profile.events import Activity, ApiCall, Event
from gui.base.theme import Theming
from gui.pages.timeline.timeline_axis import TimeAxis, at_pixel
from gui.pages.timeline.timeline_paint import TICKS, TITLES, Painter, TimelineLayout, TimelinePlace
from gui.pages.timeline.timeline_words import facts, full_name
from gui.sessions.timeline_lanes import STEADY, LaneGroup, LaneRow, Span

MOST_ARROWS = 200  # of a call that started a whole graph


class TimelineCanvas(QAbstractScrollArea):
    """`show_groups` fills it. `picked` carries the event selected (None: none any more), `measured` the
    (start, end) in ns of what is measured, None where it was let go."""

    picked = Signal(object)
    measured = Signal(object)

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
        theming.changed.connect(self.restyle)

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

    def restyle(self) -> None:
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


def _index(row: LaneRow, event: Event) -> int | None:
    """The place of this very event in a row, None where it is not in it."""
    first = int(np.searchsorted(row.starts, event.start_ns, "left"))
    last = int(np.searchsorted(row.starts, event.start_ns, "right"))
    return next((i for i in range(first, last) if row.events[i] is event), None)
