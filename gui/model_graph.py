"""A model drawn as a graph, top to bottom: a box a layer, coloured as asked, arrows for what it reads.

The wheel zooms where the pointer is, dragging moves the picture, a click selects. By keyboard: arrows go from
layer to layer, + and − zoom, 0 shows everything, 1 is full size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QLineF, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPen,
    QPolygonF,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QApplication,
    QGraphicsItem,
    QGraphicsPathItem,
    QGraphicsScene,
    QGraphicsView,
    QStyleOptionGraphicsItem,
    QWidget,
)

from gui.colour_scale import ink_on
from gui.graph_layout import layout
from gui.theme import Theme

PAD = 10.0
RADIUS = 7.0
LEAST_ZOOM, MOST_ZOOM = 0.05, 4.0
READABLE = 0.85  # a large graph opens no smaller than this


@dataclass(frozen=True)
class Box:
    """A node: key, and the lines it shows. An input of the model is `plain`: no colour, no value."""

    key: str
    title: str
    name: str = ""
    shape: str = ""
    plain: bool = False


@dataclass(frozen=True)
class Look:
    """How a box is drawn now: fill ("" = as the paper), value beside the title, tip, whether it failed."""

    fill: str = ""
    value: str = ""
    tip: str = ""
    failed: bool = False


class GraphView(QGraphicsView):
    """Shows boxes and edges; `picked` tells the key that the user selected."""

    picked = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._boxes: tuple[Box, ...] = ()
        self._edges: tuple[tuple[str, str], ...] = ()
        self._items: dict[str, _BoxItem] = {}
        self._arrows: list[_ArrowItem] = []
        self._rows: tuple[tuple[str, ...], ...] = ()
        self._selected = ""
        self._pressed: QPoint | None = None
        self._dragged = False
        self._placed_by_user = False
        self.setScene(QGraphicsScene(self))
        self.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
        self.setTransformationAnchor(QGraphicsView.ViewportAnchor.AnchorUnderMouse)
        self.setFrameShape(QGraphicsView.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Model graph")
        self.restyle(theme)

    # ------------------------------------------------------------------------------------- what it shows

    @property
    def boxes(self) -> tuple[Box, ...]:
        return self._boxes

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        return self._edges

    @property
    def selected(self) -> str:
        return self._selected

    def look(self, key: str) -> Look:
        return self._items[key].look

    def show_graph(self, boxes: Sequence[Box], edges: Sequence[tuple[str, str]]) -> None:
        """Draw another graph; nothing happens where it is the one that is drawn. Every edge leads forward."""
        if (tuple(boxes), tuple(edges)) == (self._boxes, self._edges):
            return
        self._boxes, self._edges = tuple(boxes), tuple(edges)
        self.scene().clear()
        self._items, self._arrows = {}, []
        fonts = _Fonts(self.font())
        wide = max((fonts.width(box) for box in boxes if not box.plain), default=0.0)
        sizes = {box.key: fonts.size(box, wide) for box in boxes}
        placed = layout(sizes, edges)
        self._rows = placed.rows
        for route in placed.routes.values():
            arrow = _ArrowItem([QPointF(*point) for point in route])
            self._arrows.append(arrow)
            self.scene().addItem(arrow)
        for box in boxes:
            item = _BoxItem(box, QRectF(QPointF(), QPointF(*sizes[box.key])), fonts, self._theme)
            x, y = placed.centres[box.key]
            item.setPos(x - sizes[box.key][0] / 2, y - sizes[box.key][1] / 2)
            self._items[box.key] = item
            self.scene().addItem(item)
        self.scene().setSceneRect(self.scene().itemsBoundingRect().adjusted(-40, -24, 40, 24))
        self._selected = ""
        self._placed_by_user = False
        self.restyle(self._theme)
        self._open()

    def show_looks(self, looks: Mapping[str, Look]) -> None:
        """Colours and values of the boxes, by key; those not named are plain."""
        for key, item in self._items.items():
            item.show_look(looks.get(key, Look()))

    def select(self, key: str) -> None:
        """Mark a box ("" = none) and bring it into view; tells nobody."""
        if key == self._selected:
            return
        if self._selected in self._items:
            self._items[self._selected].mark(False)
        self._selected = key if key in self._items else ""
        if self._selected:
            self._items[key].mark(True)
            self.ensureVisible(self._items[key], 20, 20)

    def restyle(self, theme: Theme) -> None:
        self._theme = theme
        self.setBackgroundBrush(QColor(theme.paper))
        for item in self._items.values():
            item.restyle(theme)
        for arrow in self._arrows:
            arrow.restyle(theme)

    # ------------------------------------------------------------------------------------------- the view

    @property
    def zoom(self) -> float:
        return self.transform().m11()

    def zoom_by(self, factor: float) -> None:
        wanted = min(MOST_ZOOM, max(LEAST_ZOOM, self.zoom * factor))
        self.scale(wanted / self.zoom, wanted / self.zoom)
        self._placed_by_user = True

    def full_size(self) -> None:
        self.zoom_by(1 / self.zoom)

    def fit(self) -> None:
        """The whole graph, no larger than it is."""
        self._set_zoom(self._fitting())
        self.centerOn(self.sceneRect().center())
        self._placed_by_user = True

    def _open(self) -> None:
        """Whole where that can be read, else readable from its top on."""
        self._set_zoom(max(READABLE, self._fitting()))
        rect = self.sceneRect()
        shown = self.mapToScene(self.viewport().rect()).boundingRect()
        self.centerOn(rect.center().x(), rect.top() + min(rect.height(), shown.height()) / 2)

    def _fitting(self) -> float:
        rect, room = self.sceneRect(), self.viewport().rect()
        if rect.isEmpty():
            return 1.0
        return max(LEAST_ZOOM, min(1.0, room.width() / rect.width(), room.height() / rect.height()))

    def _set_zoom(self, zoom: float) -> None:
        self.resetTransform()
        self.scale(zoom, zoom)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if not self._placed_by_user:
            self._open()

    # ------------------------------------------------------------------------------------ mouse and keys

    def wheelEvent(self, event: QWheelEvent) -> None:
        turned = event.angleDelta().y() or event.angleDelta().x()
        if turned:
            self.zoom_by(1.0015**turned)
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            self._pressed, self._dragged = event.position().toPoint(), False
            self._at = self._pressed
            event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._pressed is None:
            over = self._box_at(event.position().toPoint())
            shape = Qt.CursorShape.PointingHandCursor if over else Qt.CursorShape.ArrowCursor
            self.viewport().setCursor(shape)
            super().mouseMoveEvent(event)
            return
        now = event.position().toPoint()
        if not self._dragged:
            self._dragged = (now - self._pressed).manhattanLength() >= QApplication.startDragDistance()
        if self._dragged:
            self.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)
            step, self._at = now - self._at, now
            self.horizontalScrollBar().setValue(self.horizontalScrollBar().value() - step.x())
            self.verticalScrollBar().setValue(self.verticalScrollBar().value() - step.y())
            self._placed_by_user = True

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, self._pressed = self._pressed, None
        self.viewport().setCursor(Qt.CursorShape.ArrowCursor)
        if pressed is not None and not self._dragged and event.button() == Qt.MouseButton.LeftButton:
            box = self._box_at(pressed)
            if box is not None:
                self._pick(box.key)
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key in (Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Left, Qt.Key.Key_Right):
            self._step(key)
        elif key in (Qt.Key.Key_Home, Qt.Key.Key_End) and self._rows:
            self._pick(self._rows[0][0] if key == Qt.Key.Key_Home else self._rows[-1][0])
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom_by(1.25)
        elif key == Qt.Key.Key_Minus:
            self.zoom_by(0.8)
        elif key == Qt.Key.Key_0:
            self.fit()
        elif key == Qt.Key.Key_1:
            self.full_size()
        else:
            super().keyPressEvent(event)
            return
        event.accept()

    def _box_at(self, at: QPoint) -> Box | None:
        item = self.itemAt(at)
        return item.box if isinstance(item, _BoxItem) else None

    def _pick(self, key: str) -> None:
        self.select(key)
        self.picked.emit(key)

    def _step(self, key: int) -> None:
        """From the selected box along an edge, or to its neighbour in the row."""
        if not self._rows:
            return
        if not self._selected:
            self._pick(self._rows[0][0])
            return
        if key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            row = next(row for row in self._rows if self._selected in row)
            at = row.index(self._selected) + (1 if key == Qt.Key.Key_Right else -1)
            near = [row[at]] if 0 <= at < len(row) else []
        elif key == Qt.Key.Key_Down:
            near = [target for source, target in self._edges if source == self._selected]
        else:
            near = [source for source, target in self._edges if target == self._selected]
        if near:
            here = self._centre(self._selected)
            away = {k: self._centre(k) - here for k in near}
            self._pick(min(near, key=lambda k: (abs(away[k].y()), abs(away[k].x()))))

    def _centre(self, key: str) -> QPointF:
        return self._items[key].sceneBoundingRect().center()


class _Fonts:
    """The fonts of a box and the room that its lines take."""

    def __init__(self, font: QFont) -> None:
        self.plain = QFont(font)
        self.bold = QFont(font)
        self.bold.setBold(True)
        self.line = QFontMetricsF(self.bold).height()

    def width(self, box: Box) -> float:
        bold, plain = QFontMetricsF(self.bold), QFontMetricsF(self.plain)
        value = plain.horizontalAdvance("  000 µs · 00.0 %")
        lines = (plain.horizontalAdvance(box.name), plain.horizontalAdvance(box.shape))
        return min(360.0, max(bold.horizontalAdvance(box.title) + value, *lines)) + 2 * PAD

    def size(self, box: Box, wide: float) -> tuple[float, float]:
        if box.plain:
            width = QFontMetricsF(self.plain).horizontalAdvance(box.title) + 3 * PAD
            return min(width, 360.0), self.line + PAD
        return wide, (1 + bool(box.name) + bool(box.shape)) * self.line + 1.4 * PAD


class _BoxItem(QGraphicsItem):
    def __init__(self, box: Box, rect: QRectF, fonts: _Fonts, theme: Theme) -> None:
        super().__init__()
        self.box = box
        self.look = Look()
        self._rect, self._fonts, self._theme = rect, fonts, theme
        self._marked = False
        self.setZValue(1)

    def show_look(self, look: Look) -> None:
        if look != self.look:
            self.look = look
            self.setToolTip(look.tip)
            self.update()

    def mark(self, on: bool) -> None:
        self._marked = on
        self.update()

    def restyle(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def boundingRect(self) -> QRectF:
        return self._rect.adjusted(-4, -4, 4, 4)

    def shape(self) -> QPainterPath:
        path = QPainterPath()
        path.addRect(self._rect)
        return path

    def paint(self, painter: QPainter, _: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        theme, look, rect = self._theme, self.look, self._rect
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
        painter.setPen(ink)
        align = Qt.AlignmentFlag.AlignHCenter if centred else Qt.AlignmentFlag.AlignLeft
        words = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideMiddle, rect.width())
        painter.drawText(rect, align | Qt.AlignmentFlag.AlignVCenter, words)


class _ArrowItem(QGraphicsPathItem):
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
        self._length = QLineF(points[0], end).length()

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
