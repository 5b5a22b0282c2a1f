"""A colour scale for one quantity, and its legend: a bar with ticks in the quantity's unit.

Small values have a colour near that of the paper, large ones a colour far from it, in both themes.
Lightness alone shows the order, for people who see hues differently.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QLinearGradient, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from bench.words import palette
from gui.base.theme import Theme

# From little to much, on light paper and on dark: yellow-brown for times, violet for errors.
RAMPS = {
    "time": (
        ("#FDF3DC", "#FBD38A", "#EFA23B", "#C8690F", "#7E3607"),
        ("#38332C", "#65452A", "#A3621F", "#DE9233", "#FFD88A"),
    ),
    "error": (
        ("#F1EFF8", "#CFC8E8", "#A493D0", "#7556AE", "#432475"),
        ("#33313D", "#4A4269", "#6F5DA3", "#A28CD6", "#DCCFFF"),
    ),
    "signed": palette.DIVERGING,
}
STEPS = 5


@dataclass(frozen=True)
class Scale:
    """A scale from low to high, in the quantity's unit, linear or logarithmic. title: the quantity and its
    owner; text: formats a value with its unit; marks: words and colours for what is not on the scale."""

    title: str
    kind: str
    low: float
    high: float
    log: bool
    text: Callable[[float], str]
    theme: Theme
    marks: tuple[tuple[str, str], ...] = ()

    def fraction(self, value: float) -> float:
        """Where a value lies between low (0) and high (1). Values beyond are at the ends."""
        if self.high <= self.low:
            return 0.0
        if not self.log:
            part = (value - self.low) / (self.high - self.low)
        elif value <= self.low:
            part = 0.0
        else:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        return min(1.0, max(0.0, part)) if math.isfinite(part) else 1.0

    def colour(self, value: float) -> QColor:
        return blend(self.stops, self.fraction(value))

    @property
    def stops(self) -> Sequence[str]:
        return RAMPS[self.kind][self.theme.dark]

    def ticks(self, most: int = STEPS) -> list[tuple[float, str]]:
        """Fraction and text of at most `most` (2 or more) values: decades of a logarithmic scale, equal
        parts of a linear one."""
        if self.high <= self.low:
            return [(0.0, self.text(self.low))]
        if not self.log:
            values = [self.low + (self.high - self.low) * i / (most - 1) for i in range(most)]
        else:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            stride = max(1, math.ceil((last - first) / (most - 1)))
            values = [10.0**power for power in range(last, first - 1, -stride)][::-1]
        return [(self.fraction(value), self.text(value)) for value in values]


def blend(stops: Sequence[str], fraction: float) -> QColor:
    """The colour at a fraction (0 to 1) of the way along colours at equal distances."""
    return QColor(palette.blend(stops, fraction))


def ink_on(fill: QColor) -> QColor:
    """Black or white, whichever is easier to read on a colour."""
    return QColor(palette.ink_on(fill.name()))


class ScaleLegend(QWidget):
    """Draws the legend of a Scale; nothing if there is none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.scale: Scale | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Colour scale")

    def show_scale(self, scale: Scale | None) -> None:
        self.scale = scale
        words = ""
        if scale is not None:
            ticks = scale.ticks()
            words = f"{scale.title}, from {ticks[0][1]} to {ticks[-1][1]}"
        self.setAccessibleDescription(words)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        line = self.fontMetrics().height()
        return QSize(200, round(3.2 * line) + 8)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def paintEvent(self, _: QPaintEvent) -> None:
        if self.scale is None:
            return
        scale, metrics = self.scale, self.fontMetrics()
        theme, line = scale.theme, metrics.height()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_title(painter, line)
        side = 2.0 + max(metrics.horizontalAdvance(text) for _, text in scale.ticks()) / 2
        bar = QRectF(side, line + 4, max(1.0, self.width() - 2 * side), 0.8 * line)
        gradient = QLinearGradient(bar.topLeft(), bar.topRight())
        for index, stop in enumerate(scale.stops):
            gradient.setColorAt(index / (len(scale.stops) - 1), QColor(stop))
        painter.setPen(QPen(QColor(theme.line), 1))
        painter.setBrush(gradient)
        painter.drawRect(bar)
        painter.setPen(QColor(theme.muted))
        for fraction, text in self._fitting_ticks(bar.width()):
            x, wide = bar.left() + fraction * bar.width(), metrics.horizontalAdvance(text)
            painter.drawText(
                QRectF(x - wide / 2 - 1, bar.bottom() + 2, wide + 2, line), Qt.AlignmentFlag.AlignCenter, text
            )

    def _fitting_ticks(self, width: float) -> list[tuple[float, str]]:
        """As many ticks as have room beside each other."""
        assert self.scale is not None
        advance = self.fontMetrics().horizontalAdvance
        for most in range(STEPS, 2, -1):
            ticks = self.scale.ticks(most)
            if all(
                (b[0] - a[0]) * width >= (advance(a[1]) + advance(b[1])) / 2 + 8
                for a, b in itertools.pairwise(ticks)
            ):
                return ticks
        return self.scale.ticks(2)

    def _paint_title(self, painter: QPainter, line: int) -> None:
        assert self.scale is not None
        scale, metrics = self.scale, self.fontMetrics()
        x = float(self.width())
        for words, colour in reversed(scale.marks):  # from the right: swatch, words
            x -= metrics.horizontalAdvance(words)
            painter.setPen(QColor(scale.theme.muted))
            painter.drawText(QRectF(x, 0, self.width(), line), Qt.AlignmentFlag.AlignLeft, words)
            x -= line
            painter.setPen(QPen(QColor(scale.theme.line), 1))
            painter.setBrush(QColor(colour))
            painter.drawRoundedRect(QRectF(x, 0.15 * line, 0.7 * line, 0.7 * line), 2, 2)
            x -= 0.7 * line
        painter.setPen(QColor(scale.theme.ink))
        room = max(0, int(x))
        title = metrics.elidedText(scale.title, Qt.TextElideMode.ElideRight, room)
        painter.drawText(QRectF(0, 0, room, line), Qt.AlignmentFlag.AlignLeft, title)
