"""How a timeline looks: where its rows lie, and the painting of axis, groups, rows and what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QImage, QPainter, QPen

from bench.words import palette
from gui.base.letters import resized, write
from gui.base.theme import Theme
from gui.pages.timeline.timeline_axis import TimeAxis, drawn, length_text
from gui.pages.timeline.timeline_words import colour, short
from gui.sessions.timeline_lanes import Lane, LaneGroup, LaneRow
from gui.widgets.colour_scale import ink_on

TITLES = 176  # pixels of the column on the left
TICKS = 26  # of the axis at the top
HEAD = 22  # of a group's title
ROW, INNER = 20, 15  # a lane's first row, and those below it
GAP = 4  # between lanes
LABELLED = 26  # pixels from which a bar has its name in it


@dataclass(frozen=True)
class TimelinePlace:
    """A row and where it lies, from the top of all."""

    group: LaneGroup
    lane: Lane
    row: LaneRow
    first: bool
    top: float
    height: float


class TimelineLayout:
    """Where everything lies, one group below the other."""

    def __init__(self, groups: Sequence[LaneGroup]) -> None:
        self.heads: list[tuple[LaneGroup, float]] = []
        self.places: list[TimelinePlace] = []
        y = 0.0
        for group in groups:
            self.heads.append((group, y))
            y += HEAD
            for lane in group.lanes:
                for index, row in enumerate(lane.rows):
                    height = float(INNER if index else ROW)
                    self.places.append(TimelinePlace(group, lane, row, index == 0, y, height))
                    y += height
                y += GAP
        self.height = y

    def at(self, y: float) -> TimelinePlace | None:
        return next((place for place in self.places if place.top <= y < place.top + place.height), None)

    def between(self, low: float, high: float) -> Iterator[TimelinePlace]:
        return (place for place in self.places if place.top < high and place.top + place.height > low)


class Painter:
    """Paints one view of a layout. `axis.width` is that of the part right of the titles."""

    def __init__(self, painter: QPainter, axis: TimeAxis, theme: Theme, font: QFont) -> None:
        self.painter, self.axis, self.theme = painter, axis, theme
        self.metrics = QFontMetricsF(font)
        painter.setFont(font)

    def ticks(self, height: float) -> None:
        """The axis, and its lines down to `height`."""
        painter, theme, axis = self.painter, self.theme, self.axis
        painter.fillRect(QRectF(0, 0, TITLES + axis.width, TICKS), QColor(theme.window))
        room = max(80.0, self.metrics.horizontalAdvance("1,000,000.0 ms") + 12)
        for tick in axis.ticks(room):
            x = TITLES + tick.x
            painter.setPen(QPen(QColor(theme.grid), 1))
            painter.drawLine(QPointF(x, TICKS), QPointF(x, height))
            painter.setPen(QPen(QColor(theme.muted), 1))
            painter.drawLine(QPointF(x, TICKS - 5), QPointF(x, TICKS))
            if tick.x + 6 + self.metrics.horizontalAdvance(tick.text) < axis.width:
                painter.drawText(QPointF(x + 4, TICKS - 8), tick.text)
        painter.setPen(QPen(QColor(theme.line), 1))
        painter.drawLine(QPointF(0, TICKS), QPointF(TITLES + axis.width, TICKS))

    def head(self, group: LaneGroup, y: float) -> None:
        rect = QRectF(0, y, TITLES + self.axis.width, HEAD)
        self.painter.fillRect(rect, QColor(self.theme.alternate))
        self.painter.fillRect(QRectF(8, y + 6, 10, HEAD - 12), QColor(palette.backend(group.backend)))
        font = self.painter.font()
        self.painter.setFont(resized(font, bold=True))
        write(self.painter, rect.adjusted(24, 0, 0, 0), group.title, self.theme.ink)
        self.painter.setFont(font)

    def title(self, place: TimelinePlace, y: float) -> None:
        rect = QRectF(8, y, TITLES - 14, place.height)
        write(self.painter, rect, place.lane.title, self.theme.muted)

    def row(self, place: TimelinePlace, y: float, offset: float, selected: object) -> None:
        """The intervals: those that are wide enough one by one, the others as shades of how dense they
        are."""
        painter, lane, row = self.painter, place.lane, place.row
        seen = drawn(row, len(lane.keys), self.axis, offset)
        colours = [colour(key, self.theme) for key in lane.keys]
        top, height = y + 1.0, place.height - 2.0
        if seen.cover.any():
            painter.drawImage(
                QRectF(TITLES, top, len(seen.cover), height), shades(seen.cover, seen.colour, colours)
            )
        edge = QColor(self.theme.paper)
        width = self.axis.width
        for index, x0, x1 in zip(seen.wide, seen.x0, seen.x1, strict=True):
            left, right = max(float(x0), -2.0), min(float(x1), width + 2.0)
            rect = QRectF(TITLES + left, top, right - left, height)
            fill = colours[row.colours[index]]
            painter.fillRect(rect, fill)
            if rect.width() > 4:
                painter.setPen(QPen(edge, 1))
                painter.drawLine(rect.topRight(), rect.bottomRight())
            event = row.events[index]
            if event is selected:
                for tone, wide in ((self.theme.paper, 4), (self.theme.ink, 2)):  # seen on any colour
                    painter.setPen(QPen(QColor(tone), wide))
                    painter.drawRect(rect.adjusted(1, 1, -1, -1))
            if rect.width() >= LABELLED:
                inner = rect.intersected(QRectF(TITLES, top, width, height)).adjusted(4, 0, -3, 0)
                words = self.metrics.elidedText(short(event), Qt.TextElideMode.ElideRight, inner.width())
                if len(words) > 1:
                    painter.setPen(ink_on(fill))
                    painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter, words)

    def mark(self, start_ns: float, end_ns: float, place: TimelinePlace) -> None:
        """Show where the selected event is, also where it is too narrow for a frame."""
        x0, x1 = TITLES + self.axis.x(start_ns), TITLES + self.axis.x(end_ns)
        if x1 - x0 < 4:
            middle = (x0 + x1) / 2
            self.painter.fillRect(
                QRectF(middle - 1.5, place.top - 1, 3, place.height + 2), QColor(self.theme.ink)
            )

    def arrow(self, call_ns: float, call: TimelinePlace, started_ns: float, started: TimelinePlace) -> None:
        """From the beginning of a call to that of what it started."""
        ends = [
            QPointF(TITLES + self.axis.x(ns), place.top + place.height / 2)
            for ns, place in ((call_ns, call), (started_ns, started))
        ]
        if min(end.x() for end in ends) > TITLES + self.axis.width or max(end.x() for end in ends) < TITLES:
            return
        self.painter.setPen(QPen(QColor(self.theme.ink), 1.2))
        self.painter.drawLine(*ends)
        self.painter.setBrush(QColor(self.theme.ink))
        self.painter.drawEllipse(ends[1], 3, 3)
        self.painter.setBrush(Qt.BrushStyle.NoBrush)

    def measure(self, start: float, end: float, height: float) -> None:
        """The range that was measured, with its length."""
        x0, x1 = (TITLES + self.axis.x(t) for t in sorted((start, end)))
        band = QColor(self.theme.accent)
        band.setAlphaF(0.16)
        self.painter.fillRect(QRectF(x0, TICKS, x1 - x0, height - TICKS), band)
        self.painter.setPen(QPen(QColor(self.theme.accent), 1))
        for x in (x0, x1):
            self.painter.drawLine(QPointF(x, TICKS), QPointF(x, height))
        words = length_text(abs(end - start))
        wide = self.metrics.horizontalAdvance(words) + 12
        middle = min(max((x0 + x1) / 2, TITLES + wide / 2), TITLES + self.axis.width - wide / 2)
        box = QRectF(middle - wide / 2, TICKS + 3, wide, self.metrics.height() + 4)
        self.painter.setBrush(QColor(self.theme.accent))
        self.painter.drawRoundedRect(box, 3, 3)
        self.painter.setPen(QColor(self.theme.on_accent))
        self.painter.drawText(box, Qt.AlignmentFlag.AlignCenter, words)
        self.painter.setBrush(Qt.BrushStyle.NoBrush)


def shades(cover: np.ndarray, index: np.ndarray, colours: Sequence[QColor]) -> QImage:
    """An image of one row: each column in its colour, the fuller the more of it is covered."""
    table = np.array([[c.red(), c.green(), c.blue()] for c in colours], np.float64)
    alpha = np.where(cover > 0, 0.25 + 0.75 * cover, 0.0)
    rgba = np.empty((len(cover), 4), np.uint8)
    rgba[:, :3] = table[index]
    rgba[:, 3] = (alpha * 255).round()
    data = rgba.tobytes()
    return QImage(data, len(cover), 1, 4 * len(cover), QImage.Format.Format_RGBA8888).copy()
