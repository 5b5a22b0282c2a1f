"""A model drawn as a graph, top to bottom: one box for each layer, and arrows for what it reads.

The wheel zooms where the pointer is, dragging moves the picture, a click selects. By keyboard: arrows go from
layer to layer, + and − zoom, 0 shows everything, 1 is full size.

Boxes are placed by Sugiyama's method (Sugiyama, Tagawa, Toda, "Methods for visual understanding of
hierarchical system structures", 1981): longest-path layers, points of passage for edges that skip layers, an
order in each layer by barycentres, and positions that pull neighbours under each other as far as the order
allows.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from PySide6.QtCore import QPoint, QPointF, QRectF, Qt, Signal
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
    QToolButton,
    QWidget,
)

from bench.words import palette
from gui.base.theme import LEFT, Theme, Theming, resized, scaled, write
from gui.widgets.colour_scale import ink_on
from gui.widgets.controls import as_tip, tool_buttons

GAP_X = 28.0
GAP_Y = 34.0
WIDEST = 360  # pixels of a box
_SWEEPS = 8


@dataclass(frozen=True)
class Places:
    """The places of nodes and edges. centres: (x, y) by node; routes: by (source, target), the points of
    an edge from the bottom of its source to the top of its target; rows: the nodes of each layer from
    left to right, for the arrow keys."""

    centres: Mapping[str, tuple[float, float]]
    routes: Mapping[tuple[str, str], tuple[tuple[float, float], ...]]
    rows: tuple[tuple[str, ...], ...]


@dataclass(eq=False)
class _Spot:
    """A node, or a point where a long edge passes a layer."""

    key: str | None
    width: float
    height: float
    above: list[_Spot] = field(default_factory=list)
    below: list[_Spot] = field(default_factory=list)
    place: int = 0
    x: float = 0.0


def layout(sizes: Mapping[str, tuple[float, float]], edges: Sequence[tuple[str, str]]) -> Places:
    """Places for nodes of (width, height), in units of the drawing. Equal graphs get equal places.

    sizes: in an order in which every edge leads forward, as layers of a model run. Raises ValueError
    for an edge that leads backward, so that there is no cycle. An edge that is given twice counts once.
    """
    edges = list(dict.fromkeys(edges))
    place = {key: index for index, key in enumerate(sizes)}
    for source, target in edges:
        if place[source] >= place[target]:
            raise ValueError(f"edge {source} → {target} leads backwards")
    layers, paths = _layered(sizes, edges)
    for layer in layers:
        _number(layer)
    _order(layers)
    _position(layers)
    return _placed(layers, paths)


def _layered(
    sizes: Mapping[str, tuple[float, float]], edges: Sequence[tuple[str, str]]
) -> tuple[list[list[_Spot]], dict[tuple[str, str], list[_Spot]]]:
    parents: dict[str, list[str]] = {key: [] for key in sizes}
    children: dict[str, list[str]] = {key: [] for key in sizes}
    for source, target in edges:
        parents[target].append(source)
        children[source].append(target)
    depth: dict[str, int] = {}
    for key in sizes:
        depth[key] = max((depth[parent] + 1 for parent in parents[key]), default=0)
    for key in sizes:  # an input that is first read far below is placed just above its reader
        if not parents[key] and children[key]:
            depth[key] = min(depth[child] for child in children[key]) - 1
    layers: list[list[_Spot]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    spots = {key: _Spot(key, *size) for key, size in sizes.items()}
    for key, spot in spots.items():
        layers[depth[key]].append(spot)
    paths = {}
    for source, target in edges:
        path = [spots[source]]
        for level in range(depth[source] + 1, depth[target]):
            passage = _Spot(None, 10.0, 0.0)
            layers[level].append(passage)
            path.append(passage)
        path.append(spots[target])
        for upper, lower in itertools.pairwise(path):
            upper.below.append(lower)
            lower.above.append(upper)
        paths[source, target] = path
    return layers, paths


def _number(layer: list[_Spot]) -> None:
    for index, spot in enumerate(layer):
        spot.place = index


def _order(layers: list[list[_Spot]]) -> None:
    """Barycentre sweeps, down and up; the order with the fewest crossings is kept."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(_SWEEPS):
        if fewest == 0:
            break
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            wanted = {}
            for spot in layer:
                near = spot.above if down else spot.below
                wanted[spot] = sum(other.place for other in near) / len(near) if near else spot.place
            layer.sort(key=lambda spot: wanted[spot])
            _number(layer)
        count = _crossings(layers)
        if count < fewest:
            best, fewest = [list(layer) for layer in layers], count
    for layer, order in zip(layers, best, strict=True):
        layer[:] = order
        _number(layer)


def _crossings(layers: list[list[_Spot]]) -> int:
    count = 0
    for layer in layers:
        places = [lower.place for spot in layer for lower in sorted(spot.below, key=lambda s: s.place)]
        for index, place in enumerate(places):
            count += sum(1 for other in places[index + 1 :] if other < place)
    return count


def _position(layers: list[list[_Spot]]) -> None:
    for layer in layers:
        x = 0.0
        for spot in layer:
            spot.x = x + spot.width / 2
            x += spot.width + GAP_X
        for spot in layer:
            spot.x -= (x - GAP_X) / 2
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            _align(layer, down)


def _align(layer: list[_Spot], down: bool) -> None:
    """Place the spots of a layer as near as possible (least squares) to their neighbours, in order and
    without overlap. Without the least distances this is isotonic regression, solved by pooling adjacent
    violators."""
    offsets, wanted, weights = [], [], []
    offset = 0.0
    for index, spot in enumerate(layer):
        if index:
            offset += (layer[index - 1].width + spot.width) / 2 + GAP_X
        near = (spot.above if down else spot.below) or (spot.below if down else spot.above)
        # A node keeps its place below its predecessor even if a long edge joins it; else a deep net with many
        # long edges would drift sideways.
        near = [other for other in near if other.key is not None] or near if spot.key is not None else near
        offsets.append(offset)
        wanted.append((sum(other.x for other in near) / len(near) if near else spot.x) - offset)
        # Nodes weigh much more than passing edges, so that columns of nodes stay straight.
        weights.append(1.0 if spot.key is None else 1000.0)
    pools: list[tuple[float, float, int]] = []  # mean, weight, members
    for value, weight in zip(wanted, weights, strict=True):
        pool = (value, weight, 1)
        while pools and pools[-1][0] > pool[0]:
            mean, mass, members = pools.pop()
            total = mass + pool[1]
            pool = ((mean * mass + pool[0] * pool[1]) / total, total, members + pool[2])
        pools.append(pool)
    means = [mean for mean, _, members in pools for _ in range(members)]
    for spot, mean, base in zip(layer, means, offsets, strict=True):
        spot.x = mean + base


def _placed(layers: list[list[_Spot]], paths: dict[tuple[str, str], list[_Spot]]) -> Places:
    middle: dict[_Spot, float] = {}
    y = 0.0
    for layer in layers:
        height = max(spot.height for spot in layer)
        for spot in layer:
            middle[spot] = y + height / 2
            if spot.key is None:
                spot.height = height  # an edge passes the layer vertically, and not behind its boxes
        y += height + GAP_Y
    centres = {spot.key: (spot.x, middle[spot]) for layer in layers for spot in layer if spot.key is not None}
    routes = {}
    for edge, path in paths.items():
        first, last = path[0], path[-1]
        points = [(first.x, middle[first] + first.height / 2)]
        for spot in path[1:-1]:
            points += [
                (spot.x, middle[spot] - spot.height / 2),
                (spot.x, middle[spot] + spot.height / 2),
            ]
        points.append((last.x, middle[last] - last.height / 2))
        routes[edge] = tuple(points)
    rows = tuple(tuple(spot.key for spot in layer if spot.key is not None) for layer in layers)
    return Places(centres, routes, rows)


CENTRE = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignVCenter
PAD = 10.0
RADIUS = 7.0


@dataclass(frozen=True)
class Box:
    """A node: its key, and the lines it shows. plain: an input of the model, without colour and value."""

    key: str
    title: str
    name: str = ""
    shape: str = ""
    plain: bool = False


@dataclass(frozen=True)
class NodeLook:
    """How a box is drawn. fill: "" for the paper's colour; value: beside the title."""

    fill: str = ""
    value: str = ""
    tip: str = ""
    failed: bool = False


class BoxFonts:
    """The fonts of boxes, and the sizes that their lines need."""

    def __init__(self, font: QFont) -> None:
        self.plain = QFont(font)
        self.bold = resized(font, bold=True)
        self.line = QFontMetricsF(self.bold).height()

    def width(self, box: Box) -> float:
        bold, plain = QFontMetricsF(self.bold), QFontMetricsF(self.plain)
        value = plain.horizontalAdvance("   0.00 ms · 00.0 %")
        lines = (plain.horizontalAdvance(box.name), plain.horizontalAdvance(box.shape))
        return min(float(scaled(WIDEST)), max(bold.horizontalAdvance(box.title) + value, *lines)) + 2 * PAD

    def size(self, box: Box, wide: float) -> tuple[float, float]:
        if box.plain:
            width = QFontMetricsF(self.plain).horizontalAdvance(box.title) + 3 * PAD
            return min(width, float(scaled(WIDEST))), self.line + PAD
        return wide, (1 + bool(box.name) + bool(box.shape)) * self.line + 1.4 * PAD


class BoxItem(QGraphicsItem):
    """Draws a box."""

    def __init__(self, box: Box, rect: QRectF, fonts: BoxFonts, theming: Theming) -> None:
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
        faint = QColor(palette.faint_on(fill.name()))
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
    """Draws an edge: a curve through its points that leaves and arrives vertically, with a head."""

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


LEAST_ZOOM, MOST_ZOOM = 0.05, 4.0
READABLE = 0.85  # a large graph opens no smaller than this


class GraphView(QGraphicsView):
    """The graph. `picked` carries the key of the box that the user selected."""

    KEYS: ClassVar = {
        "↑, ↓, ←, →": "From node to node of the graph",
        "Home, End": "First and last node",
        "+, −": "Zoom the graph",
        "0": "Show the whole graph",
        "1": "Graph in full size",
    }
    picked = Signal(str)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        self.boxes: tuple[Box, ...] = ()
        self.edges: tuple[tuple[str, str], ...] = ()
        self._items: dict[str, BoxItem] = {}
        self._arrows: list[ArrowItem] = []
        self._rows: tuple[tuple[str, ...], ...] = ()
        self.selected = ""
        self._pressed: QPoint | None = None
        self._dragged = False
        self._placed_by_user = False
        self.setScene(QGraphicsScene(self))
        self.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
        self.setTransformationAnchor(QGraphicsView.ViewportAnchor.AnchorUnderMouse)
        self.setFrameShape(QGraphicsView.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Model graph")
        theming.changed.connect(self._restyle)
        self._restyle()

    # ------------------------------------------------------------------------------------- what it shows

    def look(self, key: str) -> NodeLook:
        return self._items[key].look

    def show_graph(self, boxes: Sequence[Box], edges: Sequence[tuple[str, str]]) -> None:
        """Draw a graph, unless it is drawn already. Every edge must lead forward."""
        if (tuple(boxes), tuple(edges)) == (self.boxes, self.edges):
            return
        self.boxes, self.edges = tuple(boxes), tuple(edges)
        self.scene().clear()
        self._items, self._arrows = {}, []
        fonts = BoxFonts(self.font())
        wide = max((fonts.width(box) for box in boxes if not box.plain), default=0.0)
        sizes = {box.key: fonts.size(box, wide) for box in boxes}
        placed = layout(sizes, edges)
        self._rows = placed.rows
        for route in placed.routes.values():
            arrow = ArrowItem([QPointF(*point) for point in route])
            self._arrows.append(arrow)
            self.scene().addItem(arrow)
        for box in boxes:
            item = BoxItem(box, QRectF(QPointF(), QPointF(*sizes[box.key])), fonts, self._theming)
            x, y = placed.centres[box.key]
            item.setPos(x - sizes[box.key][0] / 2, y - sizes[box.key][1] / 2)
            self._items[box.key] = item
            self.scene().addItem(item)
        self.scene().setSceneRect(self.scene().itemsBoundingRect().adjusted(-40, -24, 40, 24))
        self.selected = ""
        self._placed_by_user = False
        self._restyle()
        self._open()

    def show_looks(self, looks: Mapping[str, NodeLook]) -> None:
        """Set colours and values of boxes, by key. Boxes that are not named are plain."""
        for key, item in self._items.items():
            item.show_look(looks.get(key, NodeLook()))

    def select(self, key: str) -> None:
        """Mark a box ("" for none) and scroll to it. No signal is emitted."""
        if key == self.selected:
            return
        if self.selected in self._items:
            self._items[self.selected].mark(False)
        self.selected = key if key in self._items else ""
        if self.selected:
            self._items[key].mark(True)
            self.ensureVisible(self._items[key], 20, 20)

    def _restyle(self) -> None:
        theme = self._theming.theme
        self.setBackgroundBrush(QColor(theme.paper))
        for arrow in self._arrows:
            arrow.restyle(theme)
        self.scene().update()

    # ------------------------------------------------------------------------------------------- the view

    @property
    def zoom(self) -> float:
        return self.transform().m11()

    def zoom_by(self, factor: float) -> None:
        wanted = min(MOST_ZOOM, max(LEAST_ZOOM, self.zoom * factor))
        self.scale(wanted / self.zoom, wanted / self.zoom)
        self._placed_by_user = True

    def zoom_buttons(self) -> list[QToolButton]:
        """The buttons for the zoom."""
        return tool_buttons(
            ("−", "Zoom out (−)", lambda: self.zoom_by(0.8)),
            ("+", "Zoom in (+)", lambda: self.zoom_by(1.25)),
            ("Fit", "Show the whole graph (0)", self.fit),
            ("1:1", "Full size (1)", self.full_size),
        )

    def full_size(self) -> None:
        self.zoom_by(1 / self.zoom)

    def fit(self) -> None:
        """Show the whole graph, at most in full size."""
        self._set_zoom(self._fitting())
        self.centerOn(self.sceneRect().center())
        self._placed_by_user = True

    def _open(self) -> None:
        """Show the whole graph if it can be read then, else its top in a readable size."""
        self._set_zoom(max(READABLE, self._fitting()))
        rect = self.sceneRect()
        visible = self.mapToScene(self.viewport().rect()).boundingRect()
        top = [self._centre(key).x() for key in self._rows[0]] if self._rows else []
        # If it is too wide, show where it begins.
        middle = sum(top) / len(top) if top and rect.width() > visible.width() else rect.center().x()
        self.centerOn(middle, rect.top() + min(rect.height(), visible.height()) / 2)
        if self.selected:
            self.ensureVisible(self._items[self.selected], 20, 20)

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
        return item.box if isinstance(item, BoxItem) else None

    def _pick(self, key: str) -> None:
        self.select(key)
        self.picked.emit(key)

    def _step(self, key: int) -> None:
        """Go from the selected box along an edge, or to its neighbour in the row."""
        if not self._rows:
            return
        if not self.selected:
            self._pick(self._rows[0][0])
            return
        if key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            row = next(row for row in self._rows if self.selected in row)
            at = row.index(self.selected) + (1 if key == Qt.Key.Key_Right else -1)
            near = [row[at]] if 0 <= at < len(row) else []
        elif key == Qt.Key.Key_Down:
            near = [target for source, target in self.edges if source == self.selected]
        else:
            near = [source for source, target in self.edges if target == self.selected]
        if near:
            here = self._centre(self.selected)
            away = {k: self._centre(k) - here for k in near}
            self._pick(min(near, key=lambda k: (abs(away[k].y()), abs(away[k].x()))))

    def _centre(self, key: str) -> QPointF:
        return self._items[key].sceneBoundingRect().center()
