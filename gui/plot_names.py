"""Labels at the points of a line plot, set apart so that all can be read: beside them, on both sides."""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph as pg
from PySide6.QtGui import QColor, QFont, QFontMetricsF

GAP = 9  # pixels between a point and its label

Place = tuple[str, str, float, float]  # label, colour, x and y position in the view


class PointNames:
    """`show` sets them; items persist. Where there is no room for all on two sides, there are none: the
    crosshair reads out every one."""

    def __init__(self, plot: pg.PlotWidget) -> None:
        self._plot = plot
        self._items: list[pg.TextItem] = []

    def show(self, places: Sequence[Place], font: QFont, ink: str) -> None:
        box = self._plot.getPlotItem().getViewBox()
        (left, right), (low, high) = box.viewRange()
        size = box.size()
        if size.height() < 1 or size.width() < 1 or not high > low or not right > left:
            return
        across, up = (right - left) / size.width(), (high - low) / size.height()
        metrics = QFontMetricsF(font)
        least = metrics.height() * 0.86 * up
        room = max(1, int((high - low) / least))
        used = 0
        for index, side in self._sides(places, room):
            heights = spread([place[3] for place in side], least, low, high)
            for (label, _, x, _), y in zip(side, heights, strict=True):
                item = self._item(used)
                used += 1
                item.setVisible(True)
                item.setFont(font)
                item.setColor(QColor(ink))
                item.setPlainText(label)
                # The second column stands on the other side; near an edge the first does, too.
                at_left = index == 1 or x + across * (GAP + metrics.horizontalAdvance(label)) > right
                item.setAnchor((1.0, 0.5) if at_left else (0.0, 0.5))
                item.setPos(x + across * (-GAP if at_left else GAP), y)
        for item in self._items[used:]:
            item.setVisible(False)

    @staticmethod
    def _sides(places: Sequence[Place], room: int) -> list[tuple[int, list[Place]]]:
        """Of the points at one place across: on one side (0), or by turns on both (0 and 1)."""
        made: list[tuple[int, list[Place]]] = []
        for x in sorted({place[2] for place in places}):
            wanted = sorted((p for p in places if p[2] == x), key=lambda place: place[3])
            if len(wanted) <= room // 2:
                made.append((0, wanted))
            elif len(wanted) <= 2 * room:
                made += [(0, wanted[::2]), (1, wanted[1::2])]
        return made

    @property
    def texts(self) -> list[str]:
        """Those that are shown."""
        return [item.toPlainText() for item in self._items if item.isVisible()]

    def _item(self, index: int) -> pg.TextItem:
        while len(self._items) <= index:
            item = pg.TextItem()
            self._plot.addItem(item, ignoreBounds=True)
            self._items.append(item)
        return self._items[index]


def spread(wanted: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Places near those wanted (sorted upwards), `least` apart, within low and high as far as all fit."""
    placed: list[float] = []
    for value in wanted:
        placed.append(max(value, placed[-1] + least) if placed else max(value, low + least / 2))
    top = high - least / 2
    for index in range(len(placed) - 1, -1, -1):
        if placed[index] <= top:
            break
        placed[index] = top
        top -= least
    return placed
