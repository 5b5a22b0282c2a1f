"""How a point or a bar is filled that is to be doubted: hollow, hatched in its own colour."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pyqtgraph as pg
from PySide6.QtCore import QRectF
from PySide6.QtGui import QBrush, QColor, QPainter, QPen, QPixmap, QTransform
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

STEP = 4  # pixels between the lines of a hatching


@lru_cache(maxsize=128)
def hatched(colour: str, paper: str, scale: float = 1.0) -> QBrush:
    """Slanted lines on paper. scale: by how much what is painted with it is enlarged. The same object for the
    same colours: plots know what they drew by it."""
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
    """Bars in the places of a plot, whose hatching does not stretch with its axes."""

    def __init__(self) -> None:
        super().__init__()
        self._bars: list[tuple[QRectF, str]] = []
        self._paper = "#FFFFFF"

    def show_bars(self, bars: Sequence[tuple[QRectF, str]], paper: str) -> None:
        """Bars with their colours."""
        self.prepareGeometryChange()
        self._bars, self._paper = list(bars), paper
        self.update()

    @property
    def places(self) -> list[float]:
        """Where bars stand."""
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
