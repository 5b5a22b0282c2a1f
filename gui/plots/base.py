"""What line plots and bar plots share: theme, axes, crosshair with a tooltip, and a view that holds still.

The view fits the data until the user pans or zooms; then it stays, and a double click fits it again.
Plots hold positions: log10 of a value on a logarithmic axis, log2 on the axis of batch sizes. So lines,
intervals and marks share one scale, and only the axis turns positions back into values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from itertools import pairwise
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QHideEvent, QPainter, QPen, QPixmap, QTransform
from PySide6.QtWidgets import QMainWindow, QStyleOptionGraphicsItem, QWidget

from bench.views.charts.definitions import Axis, Panel
from bench.views.drawing.draw_panels import tick
from bench.words import palette
from gui.base.theme import Theme, Theming, points
from gui.widgets.controls import Readout

STEP = 4  # pixels between the lines of a hatching


@lru_cache(maxsize=128)
def hatched(colour: str, paper: str, scale: float = 1.0) -> QBrush:
    """A brush of slanted lines. scale: how much the painter enlarges it. The same colours give the same
    object, because plots compare what they drew."""
    tile = QPixmap(STEP, STEP)
    tile.fill(QColor(paper))
    painter = QPainter(tile)
    painter.setPen(QPen(QColor(colour), 1))
    for x in range(STEP):
        painter.drawPoint(x, STEP - 1 - x)
    painter.end()
    brush = QBrush(QColor(colour), tile)
    brush.setTransform(QTransform.fromScale(1 / scale, 1 / scale))
    return brush


class HatchedBars(pg.GraphicsObject):
    """Hatched bars. The hatching does not stretch with the axes."""

    def __init__(self) -> None:
        super().__init__()
        self._bars: list[tuple[QRectF, str]] = []
        self._paper = "#FFFFFF"

    def show_bars(self, bars: Sequence[tuple[QRectF, str]], paper: str) -> None:
        """Draw these bars, each with its colour."""
        self.prepareGeometryChange()
        self._bars, self._paper = list(bars), paper
        self.update()

    @property
    def places(self) -> list[float]:
        """The x positions of the bars."""
        return sorted({bar.center().x() for bar, _ in self._bars})

    def boundingRect(self) -> QRectF:
        whole = QRectF()
        for bar, _ in self._bars:
            whole = whole.united(bar)
        return whole

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        placed = QTransform(painter.transform())
        painter.save()
        painter.resetTransform()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        for bar, colour in self._bars:
            painter.setPen(QPen(QColor(colour), 1))
            painter.setBrush(hatched(colour, self._paper))
            painter.drawRect(placed.mapRect(bar).adjusted(0.5, 0.5, -0.5, -0.5))
        painter.restore()


GAP = 8  # pixels between the value and its card


def beside(size: QSize, value: QRect, room: QRect) -> QRect | None:
    """A place for a card of this size inside `room` that does not cover `value`: at its right, at its
    left, above or below. None if there is none."""
    top = max(room.top(), min(value.top(), room.bottom() - size.height()))
    left = max(room.left(), min(value.left(), room.right() - size.width()))
    places = (
        (value.right() + GAP, top),
        (value.left() - GAP - size.width(), top),
        (left, value.top() - GAP - size.height()),
        (left, value.bottom() + GAP),
    )
    cards = (QRect(x, y, size.width(), size.height()) for x, y in places)
    return next((card for card in cards if room.contains(card) and not card.intersects(value)), None)


def widest_side(value: QRect, room: QRect) -> int:
    """The width in pixels that a card may have beside `value`."""
    return max(value.left() - room.left(), room.right() - value.right()) - 2 * GAP


READOUT_WIDTH = 430  # pixels at most; longer lines wrap
LEAST_READOUT = 160
FAILED_HEIGHT = 20.0  # pixels of the band in which failures are marked
SYMBOLS = {
    "o": "o",
    "s": "s",
    "^": "t1",
    "D": "d",
    "v": "t",
    "<": "t3",
    ">": "t2",
    "*": "star",
    "P": "+",
    "h": "h",
}


class PanelPlot(pg.PlotWidget):
    """The plot of one panel. `picked` carries (series label, batch size) of what was clicked; `moved` says
    that the user has zoomed, panned or reset the view, `pointed` that the crosshair has moved. Plots that
    show the same sizes follow each other by them (`gui.plots.chart.ChartGrid`)."""

    picked = Signal(str, float)
    moved = Signal()
    pointed = Signal()

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        self.x_axis, self.y_axis = ScaleAxis("bottom"), ScaleAxis("left")
        axes = {"bottom": self.x_axis, "left": self.y_axis}
        # Making menus takes longer than everything else.
        super().__init__(parent, axisItems=axes, enableMenu=False)
        self.theming = theming
        self.panel: Panel | None = None
        self.selected: tuple[str, float] | None = None
        self.hidden: frozenset[str] = frozenset()
        self._touched = False
        self._fitted: tuple[float, float, float, float] | None = None
        item = self.getPlotItem()
        item.hideButtons()
        for side in ("top", "right"):
            item.getAxis(
                side
            ).unlinkFromView()  # it is never shown, but would format its label at each change
        item.showGrid(x=True, y=True, alpha=0.25)
        for axis in (self.x_axis, self.y_axis):
            axis.setZValue(-1)  # the grid is drawn below everything else
        self.box = item.getViewBox()
        self.box.disableAutoRange()
        self.box.sigRangeChangedManually.connect(self._on_touched)
        self.box.sigResized.connect(self._on_resized)
        self.cross = pg.InfiniteLine(angle=90, movable=False)
        self.cross.setZValue(-5)
        self.cross.hide()
        self.addItem(self.cross, ignoreBounds=True)
        self.readout = Readout(theming, self)
        self.destroyed.connect(self.readout.deleteLater)  # it may be the window's by then
        self.scene().sigMouseMoved.connect(self._on_moved)
        self.scene().sigMouseClicked.connect(self._on_clicked)
        self.setMinimumSize(140, 110)
        self.restyle()

    def sizeHint(self) -> QSize:
        """A small size, so that a row of charts is as high before the charts come as afterwards."""
        return self.minimumSize()

    # ------------------------------------------------------------------------------------- for subclasses

    def draw(self) -> None:
        """Draw `self.panel`."""
        raise NotImplementedError

    def nearest(self, position: QPointF) -> float | None:
        """The x position of the data that is nearest to a point of the view."""
        raise NotImplementedError

    def words_at(self, x: float) -> str:
        """The text of the tooltip at a position, as HTML; "" for none."""
        raise NotImplementedError

    def pick(self, position: QPointF) -> tuple[str, float] | None:
        """The (series label, batch size) that is nearest to a click."""
        raise NotImplementedError

    def place_selection(self) -> None:
        """Mark the selected point or bar (`self.selected`)."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------ for views

    def select(self, label: str, x: float | None) -> None:
        """Select a point of the series `label`, or the bar at `x` of the panel `label`. None: nothing is
        selected."""
        wanted = (label, x) if x is not None else None
        if wanted != self.selected:
            self.selected = wanted
            if self.panel is not None:
                self.place_selection()

    def show_panel(self, panel: Panel) -> None:
        self.panel = panel
        self.draw()

    def set_hidden(self, hidden: frozenset[str]) -> None:
        """Hide series with these labels, or categories with these keys."""
        self.hidden = hidden
        if self.panel is not None:
            self.draw()

    def restyle(self) -> None:
        theme = self.theming.theme
        self.setBackground(theme.paper)
        self.cross.setPen(pg.mkPen(theme.muted, width=self.pixels(1), style=Qt.PenStyle.DashLine))
        for axis in (self.x_axis, self.y_axis):
            axis.setPen(pg.mkPen(theme.muted, width=self.pixels(1)))
            axis.setTextPen(pg.mkPen(theme.ink))
            axis.colour_label(theme.muted)
        if self.panel is not None:
            self.draw()

    def fit(self, x0: float, x1: float, y0: float, y1: float, force: bool = False) -> None:
        """Show these bounds (positions), unless the user has panned or zoomed."""
        wanted = (x0, x1, y0, y1)
        if force:
            self._touched = False
        if self._touched or wanted == self._fitted:
            return
        self._fitted = wanted
        self.box.setRange(xRange=(x0, x1), yRange=(y0, y1), padding=0)

    def reset_view(self) -> None:
        """Show all data again."""
        self._touched, self._fitted = False, None
        if self.panel is not None:
            self.draw()

    def read_out(self, x: float | None) -> None:
        """Put the crosshair at a position, with the tooltip. None removes both."""
        text = self.words_at(x) if x is not None else ""
        if x is None or not text:
            if self.cross.isVisible():
                self.cross.hide()
                self.pointed.emit()
            self.readout.hide()
            return
        if not self.cross.isVisible() or self.cross.value() != x:
            self.cross.setPos(x)
            self.cross.show()
            self.pointed.emit()
        self.readout.setText(text)
        self._place_readout(x)

    def _place_readout(self, x: float) -> None:
        """Put the tooltip beside the values, over other parts of the page if the plot is too small."""
        window = self.window()
        if self.readout.parent() is not window:
            self.readout.setParent(window)
        view = self.box.sceneBoundingRect()
        here = self.box.mapViewToScene(QPointF(x, 0)).x()
        reach = self.reach()
        value = QRect(
            self.mapTo(window, QPoint(round(here - reach), round(view.top()))),
            QSize(round(2 * reach), round(view.height())),
        )
        centre = window.centralWidget() if isinstance(window, QMainWindow) else None
        room = centre.geometry() if centre is not None else window.rect()
        for widest in (READOUT_WIDTH, max(LEAST_READOUT, widest_side(value, room))):
            self._shape_readout(widest)
            if (place := beside(self.readout.size(), value, room)) is not None:
                break
        else:  # no place is free: do not cover the values, at least
            left = value.right() + 1 if value.center().x() < room.center().x() else value.left()
            shift = 0 if value.center().x() < room.center().x() else self.readout.width()
            place = QRect(QPoint(left - shift, room.top()), self.readout.size())
        self.readout.move(place.topLeft())
        self.readout.show()
        self.readout.raise_()

    def _shape_readout(self, widest: int) -> None:
        self.readout.setMinimumWidth(0)
        self.readout.setMaximumWidth(widest)
        self.readout.setWordWrap(False)
        if self.readout.sizeHint().width() > widest:
            self.readout.setWordWrap(True)
            self.readout.setFixedWidth(widest)
        self.readout.adjustSize()

    def reach(self) -> float:
        """How far, in pixels, values are drawn to both sides of their position."""
        return 14.0

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.read_out(None)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.read_out(None)

    def pixels(self, width: float) -> float:
        """The width of a pen: Qt counts that of a cosmetic pen in pixels of the device."""
        return width * self.devicePixelRatioF()

    # ------------------------------------------------------------------------------------------ the inside

    def _on_resized(self) -> None:
        if self.panel is not None:
            self.draw()

    def _on_touched(self, *_: object) -> None:
        self._touched = True
        self.moved.emit()

    def _on_moved(self, at: QPointF) -> None:
        inside = self.panel is not None and self.box.sceneBoundingRect().contains(at)
        self.read_out(self.nearest(self.box.mapSceneToView(at)) if inside else None)

    def _on_clicked(self, event: Any) -> None:
        if event.button() != Qt.MouseButton.LeftButton or self.panel is None:
            return
        if event.double():
            self.reset_view()
            self.moved.emit()
            return
        if self.box.sceneBoundingRect().contains(event.scenePos()):
            point = self.pick(self.box.mapSceneToView(event.scenePos()))
            if point is not None:
                self.picked.emit(*point)


LINE_CONTRAST = 3.0  # of a line with what it is drawn on, by WCAG
FAINT = 1.5  # a colour's contrast with the paper, below which it sinks into that


def outlined(colour: str, theme: Theme) -> str:
    """The colour for the outline of a point or bar: its own, or a muted one if that is hardly visible on
    the paper."""
    return colour if palette.contrast(colour, theme.paper) >= FAINT else theme.muted


def standing_out(colour: str, theme: Theme) -> str:
    """The colour of a line on the paper: its own, or nearer to that of text, by as much as a line needs."""
    for part in range(10):
        seen = palette.blend((colour, theme.ink), part / 10)
        if palette.contrast(seen, theme.paper) >= LINE_CONTRAST:
            return seen
    return theme.ink


def line_of(colour: str, label: str, text: str) -> str:
    """One line of a tooltip."""
    return f'<div><span style="color:{colour}">■</span> {escape(label)}&nbsp; <b>{escape(text)}</b></div>'


def failure_line(colour: str, label: str, disposition: str, reason: str) -> str:
    """The line of a tooltip for what failed."""
    words = disposition.replace("_", " ") + (f": {reason}" if reason else "")
    return f'<div><span style="color:{colour}">✕</span> {escape(label)}&nbsp; {escape(words)}</div>'


def _label_points() -> float:
    """The size in points of an axis' name."""
    return points("axis")


NAME_BESIDE = 2  # pixels left free on either side of a tick's label
FEW_NAMES = 3  # of numbered ones: fewer do not show by what step they go
_MARGIN = 4  # pixels at a label's ends, which its document keeps
_LABELLED, _PLAIN = 1.0, 0.5  # tick levels by which pyqtgraph asks for strings


def place(value: float, log: bool, base: float = 10.0) -> float:
    """The position of a value. On a logarithmic axis it is NaN for values that are not positive."""
    if not log:
        return value
    return math.log(value, base) if value > 0 else math.nan


FARTHEST = 300.0  # of a position on a logarithmic axis: a number has no more decades, and zoom no end


def value_at(position: float, log: bool, base: float = 10.0) -> float:
    """The value at a position."""
    return float(base ** max(-FARTHEST, min(FARTHEST, position))) if log else position


def linear_ticks(low: float, high: float, most: int) -> list[float]:
    """Round values from low to high, about `most` of them (steps of 1, 2, 2.5 or 5 times a power of ten)."""
    if not high > low or most < 1:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Powers of ten from low to high, also 2 and 5 times them if there is room. Round values if the range
    is below a decade."""
    if not (high > low > 0):
        return [low]
    if high / low < 8:
        values = linear_ticks(low, high, most)
        return [v for v in values if v > 0]
    for multiples in ((1, 2, 5), (1, 3), (1,)):
        values = [
            m * 10.0**e
            for e in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
            for m in multiples
            if low * (1 - 1e-9) <= m * 10.0**e <= high * (1 + 1e-9)
        ]
        if len(values) <= most:
            return values
    step = -(-len(values) // max(1, most))
    return values[::step]


class ScaleAxis(pg.AxisItem):
    """An axis that turns positions into values. A label that is longer than the axis is cut."""

    _label = ""  # the whole of it
    _label_colour = "#888888"

    def __init__(self, orientation: str) -> None:
        super().__init__(orientation)
        self.log = False
        self.base = 10.0
        self.unit = ""
        self.fixed: tuple[float, ...] = ()  # these values and no others
        self.names: dict[float, str] = {}  # of positions, in place of values
        self._short = False
        self.enableAutoSIPrefix(False)
        self.setStyle(tickLength=-3, tickTextOffset=5, hideOverlappingLabels=False)

    def describe(self, axis: Axis, log: bool, base: float = 10.0, fixed: Sequence[float] = ()) -> None:
        """Take label, unit and scale of a chart's axis. fixed: the only values that get ticks."""
        self.log, self.base, self.fixed = log, base, tuple(fixed)
        self.unit = axis.unit if self.orientation == "left" else ""
        if self._label != axis.label:
            self._label = axis.label
            self._fit_label()
        self.picture = None
        self.update()

    def resizeEvent(self, event: object = None) -> None:
        self._fit_label()
        super().resizeEvent(event)

    def colour_label(self, colour: str) -> None:
        """Colour the label. To be called after the pens are set, because they colour it, too."""
        self._label_colour = colour
        if self._label:
            self._set_label(self.labelText)

    def tickValues(self, low: float, high: float, size: float) -> list[tuple[float, list[float]]]:
        if self.names:
            places = [p for p in self.names if low <= p <= high]
        elif self.fixed:
            places = [p for v in self.fixed if low <= (p := place(v, self.log, self.base)) <= high]
        else:
            most = max(2, int(size / (34 if self.orientation == "left" else 70)))
            if self.log:
                bounds = (value_at(low, True, self.base), value_at(high, True, self.base))
                places = [place(v, True, self.base) for v in log_ticks(*bounds, most)]
            else:
                places = linear_ticks(low, high, most)
        labelled = self._fitting(places, low, high, size)
        others = [p for p in places if p not in labelled]
        return [(_LABELLED, labelled), (_PLAIN, others)]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        if spacing == _PLAIN:
            return [""] * len(values)
        return [self._text(position) for position in values]

    def label_width(self, position: float) -> float:
        """The width of a tick's label in pixels, with a margin."""
        metrics = pg.QtGui.QFontMetricsF(self.style["tickFont"] or self.font())
        return metrics.horizontalAdvance(self._text(position)) + 2 * _MARGIN

    def _fit_label(self) -> None:
        if not self._label:
            return
        size = self.size()
        room = size.height() if self.orientation == "left" else size.width()
        font = pg.QtGui.QFont(self.font())
        font.setPointSizeF(_label_points())
        elide = pg.QtCore.Qt.TextElideMode.ElideRight
        metrics = pg.QtGui.QFontMetricsF(font)
        # A share, of whatever it is; a speed-up, however it was taken.
        whole, briefly = self._label, self._label.partition(" of ")[0].partition(" (")[0]
        fits = metrics.horizontalAdvance(whole) <= room - 2 * _MARGIN
        text = metrics.elidedText(whole if fits else briefly, elide, room - 2 * _MARGIN)
        text = text if room > 0 else self._label  # not laid out yet
        if text != self.labelText:
            self._set_label(text)

    def _set_label(self, text: str) -> None:
        self.setLabel(text, color=self._label_colour, **{"font-size": f"{_label_points()}pt"})

    def _text(self, position: float) -> str:
        if self.names:
            name = self.names.get(position, "")
            return name.partition(" ")[0] if self._short else name
        value = value_at(position, self.log, self.base)
        if self.orientation == "bottom":
            return f"{round(value)}" if value >= 1 else f"{value:g}"
        return tick(float(f"{value:.6g}"), self.unit)

    def _shorten(self, metrics: pg.QtGui.QFontMetricsF, step: float) -> None:
        """If not all names fit (`step` pixels apart), show only their first words."""
        self._short = any(metrics.horizontalAdvance(name) + 6 > step for name in self.names.values())

    def _regular(
        self, places: Sequence[float], low: float, high: float, size: float, metrics: pg.QtGui.QFontMetricsF
    ) -> Sequence[float]:
        """If numbered names have no room side by side, those of every fifth number, or tenth: with every
        second one a reader looks for what the others are."""
        step = size / max(1e-9, high - low)
        numbers = {p: int(text) for p in places if (text := self._text(p)).isdecimal()}
        if any(metrics.horizontalAdvance(self._text(p)) + 2 * NAME_BESIDE > step for p in places):
            for every in (5, 10):
                kept = [p for p in places if numbers.get(p, 1) % every == 0]
                if len(kept) >= FEW_NAMES:
                    return kept
        return places

    def _fitting(self, places: Sequence[float], low: float, high: float, size: float) -> list[float]:
        """The positions whose labels do not touch the label before them."""
        if not high > low:
            return list(places)
        metrics = pg.QtGui.QFontMetricsF(self.style["tickFont"] or self.font())
        upright = self.orientation == "left"
        if self.names and not upright:
            apart = min((b - a for a, b in pairwise(sorted(self.names))), default=1.0)
            self._shorten(metrics, apart * size / max(1e-9, high - low))
        if self.names and not upright:
            places = self._regular(places, low, high, size, metrics)
        labelled: list[float] = []
        free = -math.inf
        for position in sorted(places):
            half = (
                metrics.height() / 2
                if upright
                else metrics.horizontalAdvance(self._text(position)) / 2 + NAME_BESIDE
            )
            at = (position - low) / (high - low) * size
            if at - half >= free:
                labelled.append(position)
                free = at + half
        return labelled
