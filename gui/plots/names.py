"""Labels inside a line plot, in place of a legend: a line's above its end, a point's beside it with a thin
line to it. None is cut off, none lies on another, and no line runs through any."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from gui.base.letters import resized
from gui.base.theme import Theme

LEADER = 22  # pixels from a point to its label
NEAR = 5  # pixels from a point to where the thin line begins
ROW = 0.88  # of a font's height: labels in a column may stand this close
MARGIN = 2  # pixels around a label that nothing else may touch

PointsXY = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class WantedLabel:
    """A label and the points (positions in the view) of what it names: of a line, or a single one. rank: the
    lowest are kept where there is no room for all; None: only where all have room. strong: in bold."""

    text: str
    colour: str
    points: PointsXY
    rank: int | None = None
    strong: bool = False


@dataclass(frozen=True)
class Name:
    """A label as it is drawn, in pixels of the view."""

    text: str
    colour: str
    rect: QRectF
    strong: bool = False
    leader: QLineF | None = None


class PointNames(QGraphicsItem):
    """`show_names` sets them; painted in one go over the view, in its pixels."""

    def __init__(self, plot: pg.PlotWidget) -> None:
        self._box = plot.getPlotItem().getViewBox()
        super().__init__(self._box)
        self.names: list[Name] = []
        self._font = QFont()
        self._theme: Theme | None = None
        self.setZValue(10)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)

    def show_names(self, wanted: Sequence[WantedLabel], font: QFont, theme: Theme) -> None:
        self.prepareGeometryChange()
        self._font, self._theme = font, theme
        (left, right), (low, high) = self._box.viewRange()
        size = self._box.size()
        room = QRectF(0, 0, size.width(), size.height())
        self.names = []
        if room.width() < 1 or room.height() < 1 or not high > low or not right > left:
            self.update()
            return

        def pixels(w: WantedLabel) -> PointsXY:
            across, up = room.width() / (right - left), room.height() / (high - low)
            return tuple(((x - left) * across, (high - y) * up) for x, y in w.points)

        there = [(w, pixels(w)) for w in wanted]
        lines = [(w, points) for w, points in there if len(points) > 1]
        self.names = above_lines(lines, room, font)
        taken = [name.rect for name in self.names]
        columns: dict[float, list[tuple[WantedLabel, PointsXY]]] = {}
        for w, points in there:
            if len(points) == 1 and room.contains(QPointF(*points[0])):
                columns.setdefault(points[0][0], []).append((w, points))
        for x in sorted(columns):
            made = beside_points(columns[x], room, font, taken)
            self.names += made
            taken += [name.rect for name in made]
        self.update()

    @property
    def texts(self) -> list[str]:
        """Those that are shown."""
        return [name.text for name in self.names] if self.isVisible() else []

    def boundingRect(self) -> QRectF:
        size = self._box.size()
        return QRectF(0, 0, size.width(), size.height())

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        theme = self._theme
        if theme is None:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for name in self.names:
            if name.leader is not None:
                painter.setPen(QPen(QColor(name.colour), 0.8))
                painter.drawLine(name.leader)
        for name in self.names:  # before any text: none may cover its neighbour's
            painter.fillRect(name.rect.adjusted(-1, 0, 1, 0), QColor(theme.paper))
        for name in self.names:
            painter.setPen(QColor(theme.muted if name.leader is None else theme.ink))
            painter.setFont(resized(self._font, bold=name.strong))
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextDontClip | Qt.TextFlag.TextSingleLine
            painter.drawText(name.rect, int(flags), name.text)


def above_lines(lines: Sequence[tuple[WantedLabel, PointsXY]], room: QRectF, font: QFont) -> list[Name]:
    """A label right above each line's end, or right below where another line or label is in the way, or none
    where both are. Points in pixels, y downwards."""
    metrics = QFontMetricsF(font)
    made: list[Name] = []
    for wanted, points in sorted(lines, key=lambda line: line[1][-1][1]):
        x, y = points[-1]
        width = metrics.horizontalAdvance(wanted.text)
        height = metrics.tightBoundingRect(wanted.text).height()
        left = min(x, room.right() - MARGIN) - width
        for top in (y - height - MARGIN, y + MARGIN):
            rect = QRectF(left, top, width, height)
            struck = any(_crosses(other, rect) for _, other in lines)
            grown = rect.adjusted(-MARGIN, 0, MARGIN, 0)
            free = not struck and not any(grown.intersects(name.rect) for name in made)
            if room.contains(rect) and free:
                made.append(Name(wanted.text, wanted.colour, rect))
                break
    return made


def beside_points(
    column: Sequence[tuple[WantedLabel, PointsXY]], room: QRectF, font: QFont, taken: Sequence[QRectF]
) -> list[Name]:
    """Labels of points at one place across, all on one side of it, clear of the rectangles taken: of all of
    them, or else of those that have a rank, as many as there is room for. To the right, but where the left
    has room for more than twice as many: there the lines climb that they would hide."""
    ranked = sorted((c for c in column if c[0].rank is not None), key=lambda c: c[0].rank or 0)
    found: list[list[Name]] = []
    for to_left in (False, True):
        sets = (list(column), *(ranked[:count] for count in range(len(ranked), 0, -1)))
        tried = (_column(sorted(s, key=lambda c: c[1][0][1]), to_left, room, font, taken) for s in sets)
        found.append(next((made for made in tried if made is not None), []))
    right, left = found
    return left if len(left) > 2 * len(right) else right


def _column(
    chosen: Sequence[tuple[WantedLabel, PointsXY]],
    to_left: bool,
    room: QRectF,
    font: QFont,
    taken: Sequence[QRectF],
) -> list[Name] | None:
    """None: they do not fit."""
    height = QFontMetricsF(font).height() * ROW
    at: list[float] = []
    barred: list[tuple[float, float] | None] = []
    spans: list[tuple[float, float]] = []
    for wanted, ((x, y),) in chosen:
        width = QFontMetricsF(resized(font, bold=wanted.strong)).horizontalAdvance(wanted.text)
        left = x - LEADER - width if to_left else x + LEADER
        if left < room.left() + MARGIN or left + width > room.right() - MARGIN:
            return None
        at.append(y)
        spans.append((left, width))
        # Above all that is in the way or below all of it: among labels of lines it would be taken for one.
        way = [r for r in taken if r.left() - MARGIN < left + width and left < r.right() + MARGIN]
        tops, bottoms = [r.top() - MARGIN for r in way], [r.bottom() + MARGIN for r in way]
        barred.append((min(tops) - height / 2, max(bottoms) + height / 2) if way else None)
    heights = spread(at, height, room.top() + height / 2, room.bottom() - height / 2, barred)
    if heights is None:
        return None
    made = []
    for (wanted, ((x, y),)), (left, width), middle in zip(chosen, spans, heights, strict=True):
        rect = QRectF(left, middle - height / 2, width, height)
        edge = QPointF(rect.right() + MARGIN if to_left else rect.left() - MARGIN, middle)
        line = QLineF(QPointF(x, y), edge)
        line.setP1(line.pointAt(NEAR / max(NEAR, line.length())))
        made.append(Name(wanted.text, wanted.colour, rect, wanted.strong, line))
    return made


def spread(
    wanted: Sequence[float],
    least: float,
    low: float,
    high: float,
    barred: Sequence[tuple[float, float] | None] = (),
) -> list[float] | None:
    """Places as near as can be (in squares) to those wanted, in the same (ascending) order, `least` apart,
    within low and high and out of the interval barred to each; None where there are none. To a pixel."""
    if not wanted:
        return []
    steps = np.arange(low, high + 1e-9)
    apart = math.ceil(least)
    if not len(steps):
        return None
    costs: list[np.ndarray] = []
    for index, value in enumerate(wanted):
        cost = (steps - value) ** 2
        if barred and (out := barred[index]) is not None:
            cost[(steps > out[0]) & (steps < out[1])] = np.inf
        if costs:  # the best that the ones before can do, up to `apart` below
            before = np.full(len(steps), np.inf)
            before[apart:] = np.minimum.accumulate(costs[-1])[: max(0, len(steps) - apart)]
            cost = cost + before
        costs.append(cost)
    if not np.isfinite(costs[-1]).any():
        return None
    places: list[float] = []
    end = len(steps)
    for cost in reversed(costs):
        best = int(np.argmin(cost[:end]))
        places.append(float(steps[best]))
        end = best - apart + 1
    return places[::-1]


def _crosses(points: PointsXY, rect: QRectF) -> bool:
    """Whether a line runs through a rectangle."""
    xs, ys = np.array([p[0] for p in points]), np.array([p[1] for p in points])
    if rect.right() < xs[0] or rect.left() > xs[-1]:
        return False
    inside = [x for x in xs if rect.left() < x < rect.right()]
    heights = np.interp([rect.left(), *inside, rect.right()], xs, ys)
    return bool(heights.min() < rect.bottom() + 1 and heights.max() > rect.top() - 1)
