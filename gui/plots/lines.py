"""A plot of lines: points with their intervals, marks for what failed, and names inside the plot. Items
stay; only their data change.

A line's name stands above its end, a point's name beside it with a thin line to it. No name is cut or
lies on another, and no line runs through one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from bench.views.charts.definitions import Axis, Panel, Point, Series
from bench.views.charts.label_places import FAR, spread
from bench.views.drawing.draw_panels import LANES_BESIDE
from bench.views.sentences.limits import percent
from bench.words import palette
from gui.base.theme import Theme, Theming, resized
from gui.plots.base import (
    FAILED_HEIGHT,
    SYMBOLS,
    PanelPlot,
    failure_line,
    line_of,
    outlined,
    place,
    standing_out,
    value_at,
)

DODGE = 5.0  # pixels between lines that are set aside
_DASHES = {"--": Qt.PenStyle.DashLine, "-.": Qt.PenStyle.DashDotLine, ":": Qt.PenStyle.DotLine}


class _Items:
    """The items that draw one series, each made when there is something for it: making one takes a
    millisecond, and most series have neither failures nor doubts."""

    BELOW, ABOVE = -1.0, 4.0  # where intervals and marks of failures stand, beside the lines

    def __init__(self, plot: pg.PlotWidget) -> None:
        self._plot = plot
        self.made: dict[str, pg.GraphicsObject] = {}
        self.drawn: object = None  # what they were made of: a plot is drawn again at each change of its size

    @property
    def bars(self) -> pg.ErrorBarItem:
        return self._one("bars", lambda: pg.ErrorBarItem(x=np.zeros(0), y=np.zeros(0)), self.BELOW)

    @property
    def line(self) -> pg.PlotDataItem:
        return self._one("line", pg.PlotDataItem)

    @property
    def marks(self) -> pg.ScatterPlotItem:
        return self._one("marks", pg.ScatterPlotItem, self.ABOVE)

    @property
    def unsure(self) -> pg.ScatterPlotItem:
        """Points in doubt, and points of cases that are being measured."""
        return self._one("unsure", pg.ScatterPlotItem)

    def needed(self, name: str, wanted: Sequence[object]) -> bool:
        """Whether there is anything to draw or to remove."""
        return bool(wanted) or name in self.made

    def _one(self, name: str, make: Callable[[], pg.GraphicsObject], z: float = 0.0) -> Any:
        if name not in self.made:
            item = self.made[name] = make()
            item.setZValue(z)
            self._plot.addItem(item, ignoreBounds=True)
        return self.made[name]


class LinePlot(PanelPlot):
    """Lines. log_x, log_y: override the panel's scales (None: as the panel says)."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        self._items: dict[str, _Items] = {}
        self._baseline = pg.InfiniteLine(angle=0, movable=False)
        self.log_x: bool | None = None
        self.log_y: bool | None = None
        self.ticks: tuple[float, ...] = ()  # batch sizes that will be measured, beside those that were
        self._pointed = ""  # label of the series whose name must stand, and stands out
        self._span = 1.0  # of the x axis, in its places
        self._drawing = False  # what stands at the view's edges is placed at the end
        self._failed_band = pg.LinearRegionItem(orientation="horizontal", movable=False)
        self._failed_name = pg.TextItem(anchor=(0.0, 0.5))
        self._halo = pg.ScatterPlotItem(size=20, symbol="o")
        super().__init__(theming, parent)
        self.names = PointNames(self)
        self._baseline.hide()
        self._halo.setZValue(-2)
        self._failed_band.setZValue(-3)
        for edge in self._failed_band.lines:
            edge.setPen(pg.mkPen(None))
        for item in (self._baseline, self._failed_band, self._failed_name, self._halo):
            self.addItem(item, ignoreBounds=True)
        self.box.sigRangeChanged.connect(self._on_ranged)

    @property
    def logs(self) -> tuple[bool, bool]:
        """Whether x and y are logarithmic now."""
        assert self.panel is not None
        x = self.panel.x.scale == "log" if self.log_x is None else self.log_x
        y = self.panel.y.scale == "log" if self.log_y is None else self.log_y
        return x, y

    def set_scales(self, log_x: bool | None, log_y: bool | None) -> None:
        self.log_x, self.log_y = log_x, log_y
        self.reset_view()

    def point_out(self, label: str) -> None:
        """Emphasize the name of the series that is selected."""
        if label != self._pointed:
            self._pointed = label
            self._place_names()

    def draw(self) -> None:
        panel = self.panel
        assert panel is not None
        log_x, log_y = self.logs
        ticks = sorted({*panel.x.ticks, *self.ticks})
        self.x_axis.describe(panel.x, log_x, 2.0, ticks)
        self.y_axis.describe(panel.y, log_y, 10.0, panel.y.ticks)
        self.x_axis.names = _named(panel.x, log_x, 2.0)
        self.y_axis.names = _named(panel.y, log_y, 10.0)
        if ticks:
            self._span = max(1.0, place(ticks[-1], log_x, 2.0) - place(ticks[0], log_x, 2.0))
        for label in [name for name in self._items if name not in {s.label for s in panel.series}]:
            self._remove(label)
        for index, series in enumerate(panel.series):
            items = self._items.get(series.label) or self._make(series.label)
            self._fill(items, series, self._shift(panel, index))
        theme = self.theming.theme
        self._baseline.setVisible(panel.baseline is not None)
        if panel.baseline is not None:
            self._baseline.setPos(place(panel.baseline, log_y))
            self._baseline.setPen(pg.mkPen(theme.muted, width=self.pixels(1), style=Qt.PenStyle.DashLine))
        self._drawing = True
        self._fit(panel, ticks)
        self._drawing = False
        self._on_ranged()

    def nearest(self, position: QPointF) -> float | None:
        log_x, _ = self.logs
        places = [place(x, log_x, 2.0) for x in self._batches()]
        return min(places, key=lambda p: abs(p - position.x()), default=None)

    def words_at(self, x: float) -> str:
        log_x, _ = self.logs
        batch = next((b for b in self._batches() if place(b, log_x, 2.0) == x), None)
        if batch is None or self.panel is None:
            return ""
        lines = []
        for series in self._visible():
            points = (*series.points, *series.provisional)
            lines += [line_of(series.colour, series.label, p.text) for p in points if p.x == batch]
            lines += [
                failure_line(series.colour, series.label, m.disposition, m.reason)
                for m in series.marks
                if m.x == batch
            ]
        label = self.panel.x.label
        value = percent(batch) if self.panel.x.unit == "%" else f"{batch:.3g}"
        head = f"batch {batch:,.0f}" if label.startswith("batch") else f"{value} {escape(label)}"
        return f"<div>{head}</div>{''.join(lines)}" if lines else ""

    def pick(self, position: QPointF) -> tuple[str, float] | None:
        _, log_y = self.logs
        at = self.box.mapViewToScene(position)
        candidates: list[tuple[float, str, float]] = []
        for series in self._visible():
            places = [(p.x, place(p.y, log_y)) for p in (*series.points, *series.provisional)]
            places += [(m.x, self._mark_height()) for m in series.marks]
            for batch, y in places:
                there = self.box.mapViewToScene(QPointF(self._x(batch, self._shift_of(series.label)), y))
                candidates.append((math.hypot(there.x() - at.x(), there.y() - at.y()), series.label, batch))
        distance, label, batch = min(candidates, default=(math.inf, "", 0.0))
        return (label, batch) if distance < 40 else None

    def reach(self) -> float:
        if self.panel is None or not self.panel.dodge or not self.logs[0]:
            return super().reach()
        (left, right), _ = self.box.viewRange()
        aside = max(abs(self._shift(self.panel, i)) for i in range(max(1, len(self.panel.series))))
        return super().reach() + aside * self.box.width() / max(1e-9, right - left)

    # ------------------------------------------------------------------ with other plots of the same sizes

    def follow(self, other: LinePlot) -> None:
        """Show the same sizes as another plot that was zoomed, panned or reset."""
        if not self._of_sizes(other):
            return
        if not other._touched:
            self.reset_view()
            return
        low, high = (value_at(end, other.logs[0], 2.0) for end in other.box.viewRange()[0])
        log_x, _ = self.logs
        if low > 0 or not log_x:
            self._touched = True
            self.box.setXRange(place(low, log_x, 2.0), place(high, log_x, 2.0), padding=0)

    def point_as(self, other: LinePlot) -> None:
        """Put the crosshair where another plot has it, without a tooltip."""
        if not (self._of_sizes(other) and other.cross.isVisible()):
            self.cross.hide()
            return
        there = value_at(other.cross.value(), other.logs[0], 2.0)
        self.cross.setPos(place(there, self.logs[0], 2.0))
        self.cross.show()

    def _of_sizes(self, other: LinePlot) -> bool:
        """Whether another plot has the same values along its x axis."""
        one, two = self.panel, other.panel
        return one is not None and two is not None and one.x.label == two.x.label

    # ------------------------------------------------------------------------------------------ the inside

    def _visible(self) -> list[Series]:
        assert self.panel is not None
        return [s for s in self.panel.series if s.label not in self.hidden]

    def _batches(self) -> list[float]:
        visible = self._visible()
        points = {p.x for s in visible for p in (*s.points, *s.provisional)}
        return sorted(points | {m.x for s in visible for m in s.marks})

    def _make(self, label: str) -> _Items:
        items = self._items[label] = _Items(self)
        return items

    def _remove(self, label: str) -> None:
        for item in self._items.pop(label).made.values():
            self.removeItem(item)

    def _shift(self, panel: Panel, index: int) -> float:
        """How far (in doublings) a line is moved sideways, because lines and their intervals lie on each
        other."""
        count = max(1, len(panel.series))
        step = min(DODGE * self._span / max(100.0, self.box.width()), 0.7 / count)
        return step * (index - (count - 1) / 2) if panel.dodge else 0.0

    def _shift_of(self, label: str) -> float:
        assert self.panel is not None
        labels = [series.label for series in self.panel.series]
        return self._shift(self.panel, labels.index(label)) if label in labels else 0.0

    def _x(self, batch: float, shift: float) -> float:
        log_x, _ = self.logs
        return place(batch, log_x, 2.0) + (shift if log_x else 0.0)

    def _fill(self, items: _Items, series: Series, shift: float) -> None:
        log_x, log_y = self.logs
        visible = series.label not in self.hidden
        drawn = series, visible, log_x, log_y, shift, self.theming.theme, self.pixels(1)
        if items.drawn == drawn:
            return
        items.drawn = drawn
        for item in items.made.values():
            item.setVisible(visible)
        if not visible:
            return
        theme = self.theming.theme

        def at(point: Point) -> tuple[float, float]:
            return self._x(point.x, shift), place(point.y, log_y)

        line, doubted = series.line, {p.x for p in series.points if p.doubts}
        full = 5 if series.overlay else 7
        style = _DASHES[palette.dash(series.precision)] if series.dashed else Qt.PenStyle.SolidLine
        # A line that is named at its end is a limit. It is as muted as its name.
        colour = theme.muted if series.named and len(series.points) > 1 else series.colour
        items.line.setData(
            x=np.array([self._x(x, shift) for x, _ in line]),
            y=np.array([math.nan if math.isnan(y) else place(y, log_y) for _, y in line]),
            connect="finite",
            pen=pg.mkPen(colour, width=self.pixels(0.8 if series.overlay else 1.5), style=style),
            symbol=SYMBOLS.get(series.marker, "o") if series.marker else None,
            symbolSize=[0 if x in doubted else full for x, _ in line] if doubted else full,
            symbolPen=pg.mkPen(standing_out(series.colour, theme), width=1.2),
            symbolBrush=series.colour,
        )
        bounded = [p for p in series.points if p.low is not None and p.high is not None]
        if items.needed("bars", bounded):
            lows, highs = _bounds(bounded, log_y)
            middles = np.array([place(p.y, log_y) for p in bounded])
            items.bars.setData(
                x=np.array([self._x(p.x, shift) for p in bounded]),
                y=middles,
                top=highs - middles,
                bottom=middles - lows,
                beam=0.08,
                pen=pg.mkPen(series.colour, width=self.pixels(1)),
            )
        faint = pg.mkColor(series.colour)
        faint.setAlpha(190)
        so_far = pg.mkPen(faint, width=1.6, style=Qt.PenStyle.DotLine)
        # Smaller and paler than what is sure, which is to be seen first.
        size, edge, hollow = full - 1, pg.mkPen(faint, width=1.0), pg.mkBrush(theme.paper)
        doubtful = [p for p in series.points if p.doubts]
        mark = {"symbol": SYMBOLS.get(series.marker, "o")}
        spots = [
            *({**mark, "pos": at(p), "size": 9, "pen": so_far, "brush": None} for p in series.provisional),
            *({**mark, "pos": at(p), "size": size, "pen": edge, "brush": hollow} for p in doubtful),
        ]
        if items.needed("unsure", spots):
            items.unsure.setData(spots)

    def _on_ranged(self, *_: object) -> None:
        if not self._drawing:
            self._place_marks()
            self._place_names()

    def _place_marks(self) -> None:
        """Put the marks of failures into a band at the bottom of the view, at no value."""
        if self.panel is None:
            return
        theme = self.theming.theme
        low, high = self.box.viewRange()[1]
        top, there = low + self._failed_part() * (high - low), any(s.marks for s in self._visible())
        self._failed_band.setVisible(there)
        self._failed_band.setBrush(pg.mkBrush(theme.grid))
        self._failed_band.setRegion((low, top))
        self._failed_name.setVisible(there)
        self._failed_name.setPlainText("no value")
        self._failed_name.setColor(theme.muted)
        self._failed_name.setPos(self.box.viewRange()[0][0], (low + top) / 2)
        for index, series in enumerate(self.panel.series):
            items = self._items.get(series.label)
            if items is None or series.label in self.hidden or not items.needed("marks", series.marks):
                continue
            shift, height = self._shift(self.panel, index), self._mark_height()
            items.marks.setData(
                x=[self._x(m.x, shift) for m in series.marks],
                y=[height] * len(series.marks),
                symbol="x",
                size=9,
                pen=pg.mkPen(theme.failed, width=2),
                brush=None,
            )
        self.place_selection()

    def _place_names(self) -> None:
        """Place the names of series that are named at their last point and not in a legend."""
        if self.panel is None:
            return
        log_x, log_y = self.logs
        overlaid = any(s.overlay for s in self._visible())  # their lines are much alike
        wanted = [
            WantedLabel(
                text=s.label,
                colour=outlined(s.colour, self.theming.theme),
                points=tuple((place(p.x, log_x, 2.0), place(p.y, log_y)) for p in s.points),
                rank=0 if s.label == self._pointed else 1 if s.leading else None,
                strong=s.label == self._pointed,
            )
            for s in self._visible()
            if (s.named or overlaid) and s.points
        ]
        font = resized(self.font(), more=-2, least=6.5)
        self.names.show_names(wanted, font, self.theming.theme, lanes=bool(self.panel.y.labels))

    def place_selection(self) -> None:
        assert self.panel is not None
        label, x = self.selected or ("", 0.0)
        series = next((s for s in self._visible() if s.label == label), None)
        points = (*series.points, *series.provisional) if series is not None else ()
        heights = [place(p.y, self.logs[1]) for p in points if p.x == x]
        if series is not None and not heights and any(m.x == x for m in series.marks):
            heights = [self._mark_height()]
        at = self._x(x, self._shift_of(label)) if heights else 0.0
        accent = pg.mkColor(self.theming.theme.accent)
        pen = pg.mkPen(accent, width=self.pixels(2))
        accent.setAlpha(70)
        if _any(self._halo, heights):
            self._halo.setData(x=[at] * len(heights), y=heights, pen=pen, brush=pg.mkBrush(accent))

    def _failed_part(self) -> float:
        """The share of the view's height that the band of failures takes."""
        return FAILED_HEIGHT / max(4.0 * FAILED_HEIGHT, self.box.height())

    def _mark_height(self) -> float:
        low, high = self.box.viewRange()[1]
        return low + self._failed_part() / 2 * (high - low)

    def _beside(self, first: float, last: float) -> float:
        """How far the view must reach beyond the last tick, so that its label is not cut."""
        half = self.x_axis.label_width(last) / 2
        width = max(100.0, self.box.width())
        return half * (last - first) / (width - 2 * half)

    def _fit(self, panel: Panel, ticks: list[float]) -> None:
        log_x, log_y = self.logs
        if not ticks:
            return
        x0, x1 = place(ticks[0], log_x, 2.0), place(ticks[-1], log_x, 2.0)
        pad = max(0.3 if log_x else 0.5, 0.055 * (x1 - x0), self._beside(x0, x1))
        values = [v for s in panel.series for p in s.points for v in (p.y, *p.followed)]
        values += [p.y for s in panel.series for p in s.provisional]
        values += [panel.baseline] if panel.baseline is not None else []
        values = [v for v in values if v > 0 or not log_y]
        if not values:
            values = [1.0, 10.0] if log_y else [0.0, 1.0]
        low, high = min(values), max(values)
        if log_y:
            y0, y1 = place(low, True), place(high, True)
            span = max(y1 - y0, 0.3)
            # A line that is named at its end needs room for its label above it.
            above = 0.14 if any((s.named or s.overlay) and len(s.points) > 1 for s in panel.series) else 0.08
            bounds = (y0 - 0.12 * span, y1 + above * span)
        elif panel.y.labels:  # lanes
            bounds = (min(panel.y.ticks) - LANES_BESIDE, max(panel.y.ticks) + LANES_BESIDE)
        elif panel.y.unit == "%":
            spread = max(high - low, 0.01)
            bottom, top = max(0.0, low - 0.6 * spread), min(1.0, high + 0.25 * spread)
            room = 0.06 * (top - bottom)
            bounds = (bottom - room, top + room)
        else:
            bounds = (min(0.0, low), high + 0.08 * (high - min(0.0, low) or 1.0))
        if any(s.marks for s in panel.series):  # keep the band of failures free
            part = self._failed_part()
            bounds = (bounds[0] - part / (1 - part) * (bounds[1] - bounds[0]), bounds[1])
        self.fit(x0 - pad, x1 + pad, *bounds)


def _named(axis: Axis, log: bool, base: float) -> dict[float, str]:
    """What stands at the ticks of an axis that has names in place of values."""
    return {place(v, log, base): name for v, name in zip(axis.ticks, axis.labels, strict=False)}


def _any(spots: pg.ScatterPlotItem, wanted: Sequence[object]) -> bool:
    """Whether there is anything to draw or to remove. An item takes the same time for no data as for some."""
    return bool(wanted) or len(spots.data) > 0


def _bounds(points: list[Point], log: bool) -> tuple[np.ndarray, np.ndarray]:
    lows = np.array([place(p.low if p.low is not None else p.y, log) for p in points])
    highs = np.array([place(p.high if p.high is not None else p.y, log) for p in points])
    return lows, highs


LEADER = 22  # pixels from a point to its label
NEAR = 5  # pixels from a point to where the thin line begins
ROW = 0.88  # of a font's height: labels in a column may stand this close
DOT, ASIDE = 5, 8  # pixels from the middle of a point in a lane to its edge, and to a label beside it
FEW_POINTS = 8  # in lanes, of which all may have their names
MARGIN = 2  # pixels around a label that nothing else may touch

PointsXY = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class WantedLabel:
    """A label, and the points (positions in the view) of the line or point that it names. rank: if not all
    labels fit, those with the lowest rank are kept (None: only shown if all fit); strong: in bold."""

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
    """The names inside a plot. `show_names` sets them; they are painted above the view, in its pixels."""

    def __init__(self, plot: pg.PlotWidget) -> None:
        self._box = plot.getPlotItem().getViewBox()
        super().__init__(self._box)
        self.names: list[Name] = []
        self._font = QFont()
        self._theme: Theme | None = None
        self.setZValue(10)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)

    def show_names(
        self, wanted: Sequence[WantedLabel], font: QFont, theme: Theme, lanes: bool = False
    ) -> None:
        """lanes: points stand in lanes, where names beside each other would lie on points (`in_lanes`)."""
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
        occupied = [name.rect for name in self.names]
        alone = [(w, p) for w, p in there if len(p) == 1 and room.contains(QPointF(*p[0]))]
        columns: list[list[tuple[WantedLabel, PointsXY]]] = []
        if lanes:
            self.names += in_lanes(alone, room, font)
            self.update()
            return
        for w, points in sorted(alone, key=lambda one: one[1][0][0]):
            if not columns or points[0][0] - columns[-1][-1][1][0][0] > LEADER:
                columns.append([])
            columns[-1].append((w, points))
        for column in columns:
            labels = beside_points(column, room, font, occupied)
            self.names += labels
            occupied += [name.rect for name in labels]
        self.update()

    @property
    def texts(self) -> list[str]:
        """The names that are shown."""
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
        for name in self.names:  # all backgrounds first, so that none covers another text
            painter.fillRect(name.rect.adjusted(-1, 0, 1, 0), QColor(theme.paper))
        for name in self.names:
            painter.setPen(QColor(theme.muted if name.leader is None else theme.ink))
            painter.setFont(resized(self._font, bold=name.strong))
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextDontClip | Qt.TextFlag.TextSingleLine
            painter.drawText(name.rect, int(flags), name.text)


def above_lines(lines: Sequence[tuple[WantedLabel, PointsXY]], room: QRectF, font: QFont) -> list[Name]:
    """A label right above each line's end, or right below it if another line or label is in the way, or
    none. Points in pixels, y grows downwards."""
    metrics = QFontMetricsF(font)
    labels: list[Name] = []
    for wanted, points in sorted(lines, key=lambda line: line[1][-1][1]):
        x, y = points[-1]
        width = metrics.horizontalAdvance(wanted.text)
        height = metrics.tightBoundingRect(wanted.text).height()
        left = min(x, room.right() - MARGIN) - width
        for top in (y - height - MARGIN, y + MARGIN):
            rect = QRectF(left, top, width, height)
            struck = any(_crosses(other, rect) for _, other in lines)
            grown = rect.adjusted(-MARGIN, 0, MARGIN, 0)
            free = not struck and not any(grown.intersects(name.rect) for name in labels)
            if room.contains(rect) and free:
                labels.append(Name(wanted.text, wanted.colour, rect))
                break
    return labels


def beside_points(
    column: Sequence[tuple[WantedLabel, PointsXY]], room: QRectF, font: QFont, occupied: Sequence[QRectF]
) -> list[Name]:
    """Labels of points near each other in x, all on one side and clear of the rectangles in `occupied`.
    Either all of them, each near its point, or as many of the ranked ones as fit. They stand to the right,
    unless the left has room for more than twice as many: on the left, lines climb that they would hide."""
    ranked = sorted((c for c in column if c[0].rank is not None), key=lambda c: c[0].rank or 0)
    sides: list[list[Name]] = []
    for to_left in (False, True):
        sets = ((list(column), FAR), *((ranked[:count], math.inf) for count in range(len(ranked), 0, -1)))
        tried = (
            _column(sorted(some, key=lambda c: c[1][0][1]), to_left, room, font, occupied, far)
            for some, far in sets
        )
        sides.append(next((labels for labels in tried if labels is not None), []))
    right, left = sides
    return left if len(left) > 2 * len(right) else right


def in_lanes(points: Sequence[tuple[WantedLabel, PointsXY]], room: QRectF, font: QFont) -> list[Name]:
    """Labels of points that stand in lanes: each beside its point, else above or below it, on no other label
    and on no point; where there are many points, of the ranked ones alone. What has no place has none."""
    spots = [QRectF(x - DOT, y - DOT, 2 * DOT, 2 * DOT) for _, ((x, y),) in points]
    wanted = [one for one in points if one[0].rank is not None or len(points) <= FEW_POINTS]
    names: list[Name] = []
    for label, ((x, y),) in sorted(wanted, key=lambda one: (one[0].rank or 0, -one[1][0][0])):
        metrics = QFontMetricsF(resized(font, bold=label.strong))
        wide, high = metrics.horizontalAdvance(label.text), metrics.height() * ROW
        middle = min(max(x - wide / 2, room.left() + MARGIN), room.right() - MARGIN - wide)
        places = (
            QRectF(x + ASIDE, y - high / 2, wide, high),
            QRectF(x - ASIDE - wide, y - high / 2, wide, high),
            QRectF(middle, y - DOT - MARGIN - high, wide, high),
            QRectF(middle, y + DOT + MARGIN, wide, high),
        )
        for rect in places:
            taken = any(rect.intersects(spot) for spot in spots)
            if room.contains(rect) and not taken and not any(rect.intersects(name.rect) for name in names):
                edge = QPointF(min(max(x, rect.left()), rect.right()), min(max(y, rect.top()), rect.bottom()))
                names.append(Name(label.text, label.colour, rect, label.strong, QLineF(QPointF(x, y), edge)))
                break
    return names


def _column(
    chosen: Sequence[tuple[WantedLabel, PointsXY]],
    to_left: bool,
    room: QRectF,
    font: QFont,
    occupied: Sequence[QRectF],
    far: float,
) -> list[Name] | None:
    """The labels in a column, None if they do not fit. far: pixels that a label may stand above or below its
    point."""
    xs = [x for _, ((x, _),) in chosen]
    edge_x = min(xs) if to_left else max(xs)
    height = QFontMetricsF(font).height() * ROW
    at: list[float] = []
    barred: list[tuple[float, float] | None] = []
    spans: list[tuple[float, float]] = []
    for wanted, ((_, y),) in chosen:
        width = QFontMetricsF(resized(font, bold=wanted.strong)).horizontalAdvance(wanted.text)
        left = edge_x - LEADER - width if to_left else edge_x + LEADER
        if left < room.left() + MARGIN or left + width > room.right() - MARGIN:
            return None
        at.append(y)
        spans.append((left, width))
        # Above or below everything that is in the way: between names of lines it would be taken for one.
        way = [r for r in occupied if r.left() - MARGIN < left + width and left < r.right() + MARGIN]
        tops, bottoms = [r.top() - MARGIN for r in way], [r.bottom() + MARGIN for r in way]
        barred.append((min(tops) - height / 2, max(bottoms) + height / 2) if way else None)
    heights = spread(at, height, room.top() + height / 2, room.bottom() - height / 2, barred)
    if heights is None or any(abs(middle - y) > far for middle, y in zip(heights, at, strict=True)):
        return None
    labels = []
    for (wanted, ((x, y),)), (left, width), middle in zip(chosen, spans, heights, strict=True):
        rect = QRectF(left, middle - height / 2, width, height)
        edge = QPointF(rect.right() + MARGIN if to_left else rect.left() - MARGIN, middle)
        line = QLineF(QPointF(x, y), edge)
        line.setP1(line.pointAt(NEAR / max(NEAR, line.length())))
        labels.append(Name(wanted.text, wanted.colour, rect, wanted.strong, line))
    return labels


def _crosses(points: PointsXY, rect: QRectF) -> bool:
    """Whether a line runs through a rectangle."""
    xs, ys = np.array([p[0] for p in points]), np.array([p[1] for p in points])
    if rect.right() < xs[0] or rect.left() > xs[-1]:
        return False
    inside = [x for x in xs if rect.left() < x < rect.right()]
    heights = np.interp([rect.left(), *inside, rect.right()], xs, ys)
    return bool(heights.min() < rect.bottom() + 1 and heights.max() > rect.top() - 1)
