"""Axes of live plots: values are placed on a scale, and ticks are labelled as the exported charts label them.

Plots hold positions (log10 of a value on a logarithmic axis, log2 on the axis of batch sizes), so that lines,
intervals and marks share one scale; only the axis turns positions back into values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyqtgraph as pg

from bench.views.charts.definitions import Axis
from bench.views.drawing.draw_panels import tick

_LABEL_PT = 8
_MARGIN = 4  # pixels at a label's ends, which its document keeps
_LABELLED, _PLAIN = 1.0, 0.5  # tick levels by which pyqtgraph asks for strings


def place(value: float, log: bool, base: float = 10.0) -> float:
    """A value's position; on a logarithmic scale nothing at or below 0 has one (NaN)."""
    if not log:
        return value
    return math.log(value, base) if value > 0 else math.nan


def value_at(position: float, log: bool, base: float = 10.0) -> float:
    return float(base**position) if log else position


def linear_ticks(low: float, high: float, most: int) -> list[float]:
    """At most about `most` round values (steps of 1, 2, 2.5 or 5 times a power of ten) within low…high."""
    if not high > low or most < 1:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Powers of ten within low…high, with 2 and 5 times them where there is room; round values where the
    range is less than a decade."""
    if not (high > low > 0):
        return [low]
    if high / low < 8:
        found = linear_ticks(low, high, most)
        return [v for v in found if v > 0]
    for multiples in ((1, 2, 5), (1, 3), (1,)):
        found = [
            m * 10.0**e
            for e in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
            for m in multiples
            if low * (1 - 1e-9) <= m * 10.0**e <= high * (1 + 1e-9)
        ]
        if len(found) <= most:
            return found
    step = -(-len(found) // max(1, most))
    return found[::step]


class ScaleAxis(pg.AxisItem):
    """An axis that knows what its positions mean. `describe` it, then let the plot use it. A label that is
    longer than the axis is cut short."""

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
        """Take label, unit and scale from a chart's axis; `fixed`: the values to have ticks at."""
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
        """After the pens, which colour it too."""
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
        """Pixels that a tick's label takes, with a little beside it."""
        metrics = pg.QtGui.QFontMetricsF(self.style["tickFont"] or self.font())
        return metrics.horizontalAdvance(self._text(position)) + 2 * _MARGIN

    def _fit_label(self) -> None:
        if not self._label:
            return
        size = self.size()
        room = size.height() if self.orientation == "left" else size.width()
        font = pg.QtGui.QFont(self.font())
        font.setPointSizeF(_LABEL_PT)
        elide = pg.QtCore.Qt.TextElideMode.ElideRight
        metrics = pg.QtGui.QFontMetricsF(font)
        whole, briefly = self._label, self._label.partition(" of ")[0]  # a share, of whatever it is
        fits = metrics.horizontalAdvance(whole) <= room - 2 * _MARGIN
        text = metrics.elidedText(whole if fits else briefly, elide, room - 2 * _MARGIN)
        text = text if room > 0 else self._label  # not laid out yet
        if text != self.labelText:
            self._set_label(text)

    def _set_label(self, text: str) -> None:
        self.setLabel(text, color=self._label_colour, **{"font-size": f"{_LABEL_PT}pt"})

    def _text(self, position: float) -> str:
        if self.names:
            name = self.names.get(position, "")
            return name.partition(" ")[0] if self._short else name
        value = value_at(position, self.log, self.base)
        if self.orientation == "bottom":
            return f"{round(value)}" if value >= 1 else f"{value:g}"
        return tick(float(f"{value:.6g}"), self.unit)

    def _shorten(self, metrics: pg.QtGui.QFontMetricsF, step: float) -> None:
        """Names of which not all fit beside each other (`step` pixels apart) stand as their first words."""
        self._short = any(metrics.horizontalAdvance(name) + 6 > step for name in self.names.values())

    def _fitting(self, places: Sequence[float], low: float, high: float, size: float) -> list[float]:
        """Those whose labels do not touch the one before."""
        if not high > low:
            return list(places)
        metrics = pg.QtGui.QFontMetricsF(self.style["tickFont"] or self.font())
        upright = self.orientation == "left"
        if self.names and not upright:
            self._shorten(metrics, size / max(1e-9, high - low))
        kept: list[float] = []
        free = -math.inf
        for position in sorted(places):
            half = (
                metrics.height() / 2 if upright else metrics.horizontalAdvance(self._text(position)) / 2 + 3
            )
            at = (position - low) / (high - low) * size
            if at - half >= free:
                kept.append(position)
                free = at + half
        return kept
