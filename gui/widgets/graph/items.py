"""The items of a model's graph: boxes with their words, and the arrows between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen, QPolygonF
from PySide6.QtWidgets import QGraphicsItem, QGraphicsPathItem, QStyleOptionGraphicsItem, QWidget

from gui.base.letters import LEFT, resized, write
from gui.base.theme import Theme, Theming
from gui.widgets.colour_scale import ink_on
from gui.widgets.labels import as_tip

CENTRE = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignVCenter
PAD = 10.0
RADIUS = 7.0


@dataclass(frozen=True)
class Box:
    """A node: key, and the lines it shows. An input of the model is `plain`: no colour, no value."""

    key: str
    title: str
    name: str = ""
    shape: str = ""
    plain: bool = False


@dataclass(frozen=True)
class NodeLook:
    """How a box is drawn now: fill ("" = as the paper), value beside the title, tip, whether it failed."""

    fill: str = ""
    value: str = ""
    tip: str = ""
    failed: bool = False


class Fonts:
    """The fonts of a box and the room that its lines take."""

    def __init__(self, font: QFont) -> None:
        self.plain = QFont(font)
        self.bold = resized(font, bold=True)
        self.line = QFontMetricsF(self.bold).height()

    def width(self, box: Box) -> float:
        bold, plain = QFontMetricsF(self.bold), QFontMetricsF(self.plain)
        value = plain.horizontalAdvance("   0.00 ms · 00.0 %")
        lines = (plain.horizontalAdvance(box.name), plain.horizontalAdvance(box.shape))
        return min(360.0, max(bold.horizontalAdvance(box.title) + value, *lines)) + 2 * PAD

    def size(self, box: Box, wide: float) -> tuple[float, float]:
        if box.plain:
            width = QFontMetricsF(self.plain).horizontalAdvance(box.title) + 3 * PAD
            return min(width, 360.0), self.line + PAD
        return wide, (1 + bool(box.name) + bool(box.shape)) * self.line + 1.4 * PAD


class BoxItem(QGraphicsItem):
    def __init__(self, box: Box, rect: QRectF, fonts: Fonts, theming: Theming) -> None:
        super().__init__()
        self.box = box
        self.look = NodeLook()
        self._rect, self._fonts, self._theming = rect, fonts, theming
        self._marked = False
        self.setZValue(1)

    def show_look(self, look: NodeLook) -> None:
        if look != self.look:
            self.look = look
            self.setToolTip(as_tip(look.tip))
            self.update()

    def mark(self, on: bool) -> None:
        self._marked = on
        self.update()

    def boundingRect(self) -> QRectF:
        return self._rect.adjusted(-4, -4, 4, 4)

    def shape(self) -> QPainterPath:
        path = QPainterPath()
        path.addRect(self._rect)
        return path

    def paint(self, painter: QPainter, _: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        theme, look, rect = self._theming.theme, self.look, self._rect
        fill = QColor(look.fill or theme.alternate)
        border = theme.failed if look.failed else theme.line
        radius = rect.height() / 2 if self.box.plain else RADIUS
        painter.setBrush(fill)
        painter.setPen(QPen(QColor(border), 2.0 if look.failed else 1.0))
        painter.drawRoundedRect(rect, radius, radius)
        if self._marked:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(theme.accent), 3.0))
            painter.drawRoundedRect(rect.adjusted(-2, -2, 2, 2), radius + 2, radius + 2)
        ink = ink_on(fill)
        faint = QColor(ink)
        faint.setAlphaF(0.78)
        if self.box.plain:
            self._line(painter, rect, self.box.title, self._fonts.plain, faint, centred=True)
            return
        inner = rect.adjusted(PAD, 0.7 * PAD, -PAD, -0.7 * PAD)
        top = QRectF(inner.left(), inner.top(), inner.width(), self._fonts.line)
        painter.setFont(self._fonts.plain)
        painter.setPen(ink)
        painter.drawText(top, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, look.value)
        self._line(painter, top, ("✕ " if look.failed else "") + self.box.title, self._fonts.bold, ink)
        for text in (self.box.name, self.box.shape):
            if text:
                top = top.translated(0, self._fonts.line)
                self._line(painter, top, text, self._fonts.plain, faint)

    def _line(
        self, painter: QPainter, rect: QRectF, text: str, font: QFont, ink: QColor, centred: bool = False
    ) -> None:
        painter.setFont(font)
        write(painter, rect, text, ink, CENTRE if centred else LEFT, Qt.TextElideMode.ElideMiddle)


class ArrowItem(QGraphicsPathItem):
    """An edge: a curve through its points, that leaves and arrives upright, with a head."""

    def __init__(self, points: Sequence[QPointF]) -> None:
        end = points[-1]
        neck = QPointF(end.x(), end.y() - 6)
        path = QPainterPath(points[0])
        at = points[0]
        for point in (*points[1:-1], neck):
            bend = (point.y() - at.y()) / 2
            path.cubicTo(at.x(), at.y() + bend, point.x(), point.y() - bend, point.x(), point.y())
            at = point
        super().__init__(path)
        self._head = QPolygonF([QPointF(end.x() - 4, neck.y()), QPointF(end.x() + 4, neck.y()), end])
        self._colour = QColor()

    def restyle(self, theme: Theme) -> None:
        self._colour = QColor(theme.muted)
        self.setPen(QPen(self._colour, 1.3))
        self.update()

    def boundingRect(self) -> QRectF:
        return super().boundingRect().united(self._head.boundingRect())

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        super().paint(painter, option, widget)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._colour)
        painter.drawPolygon(self._head)
