"""Lines over batch size: points with their intervals, marks for what failed; items persist, data is set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt
from PySide6.QtWidgets import QWidget

from bench.views.charts.definitions import Panel, Point, Series
from bench.words import palette
from gui.base.letters import resized
from gui.base.theme import Theming
from gui.plots.axes import place
from gui.plots.base import LANE, SYMBOLS, PanelPlot, failure_line, hatched, line_of, outlined
from gui.plots.names import PointNames, WantedLabel

DODGE = 5.0  # pixels between lines that are set aside
_DASHES = {"--": Qt.PenStyle.DashLine, "-.": Qt.PenStyle.DashDotLine, ":": Qt.PenStyle.DotLine}


@dataclass
class _Items:
    """What draws one series."""

    bars: pg.ErrorBarItem
    line: pg.PlotDataItem
    marks: pg.ScatterPlotItem
    unsure: pg.ScatterPlotItem  # points that are to be doubted, and those of cases being measured
    drawn: object = None  # what they were made of: a plot is drawn again at each change of its size

    def all(self) -> tuple[pg.GraphicsObject, ...]:
        return self.bars, self.line, self.marks, self.unsure


class LinePlot(PanelPlot):
    """`log_x` and `log_y` override the panel's scales (None: as the panel says)."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        self._items: dict[str, _Items] = {}
        self._baseline = pg.InfiniteLine(angle=0, movable=False)
        self.log_x: bool | None = None
        self.log_y: bool | None = None
        self.ticks: tuple[float, ...] = ()  # batch sizes that will be measured, beside those that were
        self._pointed = ""  # label of the series whose name must stand, and stands out
        self._span = 1.0  # of the x axis, in its places
        self._drawing = False  # what stands at the view's edges is placed at the end
        self._lane = pg.LinearRegionItem(orientation="horizontal", movable=False)
        self._lane_name = pg.TextItem(anchor=(0.0, 0.5))
        self._halo = pg.ScatterPlotItem(size=20, symbol="o")
        super().__init__(theming, parent)
        self.names = PointNames(self)
        self._baseline.hide()
        self._halo.setZValue(-2)
        self._lane.setZValue(-3)
        for edge in self._lane.lines:
            edge.setPen(pg.mkPen(None))
        for item in (self._baseline, self._lane, self._lane_name, self._halo):
            self.addItem(item, ignoreBounds=True)
        self.box.sigRangeChanged.connect(self._on_ranged)
        self.box.sigResized.connect(self._on_resized)

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
        """Of the series that are named at their points, the one selected."""
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
            shown = (*series.points, *series.provisional)
            lines += [line_of(series.colour, series.label, p.text) for p in shown if p.x == batch]
            lines += [
                failure_line(series.colour, series.label, m.disposition, m.reason)
                for m in series.marks
                if m.x == batch
            ]
        label = self.panel.x.label
        head = f"batch {batch:,.0f}" if label.startswith("batch") else f"{batch:.3g} {escape(label)}"
        return f"<div>{head}</div>{''.join(lines)}" if lines else ""

    def pick(self, position: QPointF) -> tuple[str, float] | None:
        _, log_y = self.logs
        at = self.box.mapViewToScene(position)
        found: list[tuple[float, str, float]] = []
        for series in self._visible():
            places = [(p.x, place(p.y, log_y)) for p in (*series.points, *series.provisional)]
            places += [(m.x, self._mark_height()) for m in series.marks]
            for batch, y in places:
                there = self.box.mapViewToScene(QPointF(self._x(batch, self._shift_of(series.label)), y))
                found.append((math.hypot(there.x() - at.x(), there.y() - at.y()), series.label, batch))
        distance, label, batch = min(found, default=(math.inf, "", 0.0))
        return (label, batch) if distance < 40 else None

    def reach(self) -> float:
        if self.panel is None or not self.panel.dodge or not self.logs[0]:
            return super().reach()
        (left, right), _ = self.box.viewRange()
        aside = max(abs(self._shift(self.panel, i)) for i in range(max(1, len(self.panel.series))))
        return super().reach() + aside * self.box.width() / max(1e-9, right - left)

    # ------------------------------------------------------------------------------------------ the inside

    def _visible(self) -> list[Series]:
        assert self.panel is not None
        return [s for s in self.panel.series if s.label not in self.hidden]

    def _batches(self) -> list[float]:
        visible = self._visible()
        points = {p.x for s in visible for p in (*s.points, *s.provisional)}
        return sorted(points | {m.x for s in visible for m in s.marks})

    def _make(self, label: str) -> _Items:
        items = _Items(
            pg.ErrorBarItem(x=np.zeros(0), y=np.zeros(0)),
            pg.PlotDataItem(),
            pg.ScatterPlotItem(),
            pg.ScatterPlotItem(),
        )
        items.marks.setZValue(4)
        for item in items.all():
            self.addItem(item, ignoreBounds=True)
        self._items[label] = items
        return items

    def _remove(self, label: str) -> None:
        for item in self._items.pop(label).all():
            self.removeItem(item)

    def _shift(self, panel: Panel, index: int) -> float:
        """By how many doublings a line is set aside: lines and their intervals lie on each other."""
        shown = max(1, len(panel.series))
        step = min(DODGE * self._span / max(100.0, self.box.width()), 0.7 / shown)
        return step * (index - (shown - 1) / 2) if panel.dodge else 0.0

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
        for item in items.all():
            item.setVisible(visible)
        if not visible:
            return
        theme = self.theming.theme

        def at(point: Point) -> tuple[float, float]:
            return self._x(point.x, shift), place(point.y, log_y)

        line = series.line
        style = _DASHES[palette.dash(series.precision)] if series.dashed else Qt.PenStyle.SolidLine
        # What is named at its end is a limit: as muted as its name, in either theme.
        colour = theme.muted if series.named and len(series.points) > 1 else series.colour
        items.line.setData(
            x=np.array([self._x(x, shift) for x, _ in line]),
            y=np.array([math.nan if math.isnan(y) else place(y, log_y) for _, y in line]),
            connect="finite",
            pen=pg.mkPen(colour, width=self.pixels(0.8 if series.overlay else 1.5), style=style),
            symbol=SYMBOLS.get(series.marker, "o") if series.marker else None,
            symbolSize=5 if series.overlay else 7,
            symbolPen=pg.mkPen(outlined(series.colour, theme), width=1.2),
            symbolBrush=series.colour,
        )
        bounded = [p for p in series.points if p.low is not None and p.high is not None]
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
        size = 9 if series.overlay else 12
        edge, hatching = pg.mkPen(series.colour, width=1.4), hatched(series.colour, theme.paper, size)
        doubtful = [p for p in series.points if p.doubts]
        mark = {"symbol": SYMBOLS.get(series.marker, "o")}
        spots = [
            *({**mark, "pos": at(p), "size": 9, "pen": so_far, "brush": None} for p in series.provisional),
            *({**mark, "pos": at(p), "size": size, "pen": edge, "brush": hatching} for p in doubtful),
        ]
        if _any(items.unsure, spots):
            items.unsure.setData(spots)

    def _on_ranged(self, *_: object) -> None:
        if not self._drawing:
            self._place_marks()
            self._place_names()

    def _place_marks(self) -> None:
        """Failures stand in a lane of their own at the bottom of the view, wherever that is: at no value."""
        if self.panel is None:
            return
        theme = self.theming.theme
        low, high = self.box.viewRange()[1]
        top, there = low + self._lane_part() * (high - low), any(s.marks for s in self._visible())
        self._lane.setVisible(there)
        self._lane.setBrush(pg.mkBrush(theme.grid))
        self._lane.setRegion((low, top))
        self._lane_name.setVisible(there)
        self._lane_name.setPlainText("no value")
        self._lane_name.setColor(theme.muted)
        self._lane_name.setPos(self.box.viewRange()[0][0], (low + top) / 2)
        for index, series in enumerate(self.panel.series):
            items = self._items.get(series.label)
            if items is None or series.label in self.hidden or not _any(items.marks, series.marks):
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

    def _on_resized(self) -> None:
        if self.panel is not None:
            self.draw()

    def _place_names(self) -> None:
        """Labels of series that stand at their last point and in no legend."""
        if self.panel is None:
            return
        log_x, log_y = self.logs
        wanted = [
            WantedLabel(
                text=s.label,
                colour=outlined(s.colour, self.theming.theme),
                points=tuple((place(p.x, log_x, 2.0), place(p.y, log_y)) for p in s.points),
                rank=0 if s.label == self._pointed else 1 if s.leading else None,
                strong=s.label == self._pointed,
            )
            for s in self._visible()
            if s.named and s.points
        ]
        font = resized(self.font(), more=-2, least=6.5)
        self.names.show_names(wanted, font, self.theming.theme)

    def place_selection(self) -> None:
        assert self.panel is not None
        label, x = self.selected or ("", 0.0)
        series = next((s for s in self._visible() if s.label == label), None)
        shown = (*series.points, *series.provisional) if series is not None else ()
        heights = [place(p.y, self.logs[1]) for p in shown if p.x == x]
        if series is not None and not heights and any(m.x == x for m in series.marks):
            heights = [self._mark_height()]
        at = self._x(x, self._shift_of(label)) if heights else 0.0
        accent = pg.mkColor(self.theming.theme.accent)
        pen = pg.mkPen(accent, width=self.pixels(2))
        accent.setAlpha(70)
        if _any(self._halo, heights):
            self._halo.setData(x=[at] * len(heights), y=heights, pen=pen, brush=pg.mkBrush(accent))

    def _lane_part(self) -> float:
        """What the lane of failures takes of the view's height."""
        return LANE / max(4.0 * LANE, self.box.height())

    def _mark_height(self) -> float:
        low, high = self.box.viewRange()[1]
        return low + self._lane_part() / 2 * (high - low)

    def _beside(self, first: float, last: float) -> float:
        """How far the view reaches beyond the last tick for its label: cut, it would not be drawn."""
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
            # Above a line that is named at its end its label has to stand, too.
            above = 0.14 if any(s.named and len(s.points) > 1 for s in panel.series) else 0.08
            bounds = (y0 - 0.12 * span, y1 + above * span)
        elif panel.y.unit == "%":
            spread = max(high - low, 0.01)
            bottom, top = max(0.0, low - 0.6 * spread), min(1.0, high + 0.25 * spread)
            room = 0.06 * (top - bottom)
            bounds = (bottom - room, top + room)
        else:
            bounds = (min(0.0, low), high + 0.08 * (high - min(0.0, low) or 1.0))
        if any(s.marks for s in panel.series):  # nothing is drawn in their lane
            part = self._lane_part()
            bounds = (bounds[0] - part / (1 - part) * (bounds[1] - bounds[0]), bounds[1])
        self.fit(x0 - pad, x1 + pad, *bounds)


def _any(spots: pg.ScatterPlotItem, wanted: Sequence[object]) -> bool:
    """Whether there is any to draw, or to take away: an item takes as long to be told of none as of some."""
    return bool(wanted) or len(spots.data) > 0


def _bounds(points: list[Point], log: bool) -> tuple[np.ndarray, np.ndarray]:
    lows = np.array([place(p.low if p.low is not None else p.y, log) for p in points])
    highs = np.array([place(p.high if p.high is not None else p.y, log) for p in points])
    return lows, highs
