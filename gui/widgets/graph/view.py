"""A model drawn as a graph, top to bottom: a box a layer, coloured as asked, arrows for what it reads.

The wheel zooms where the pointer is, dragging moves the picture, a click selects. By keyboard: arrows go from
layer to layer, + and − zoom, 0 shows everything, 1 is full size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from PySide6.QtCore import QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QGraphicsScene, QGraphicsView, QToolButton, QWidget

from gui.base.theme import Theming
from gui.widgets.controls import tool_buttons
from gui.widgets.graph.items import ArrowItem, Box, BoxItem, Fonts, NodeLook
from gui.widgets.graph.layout import layout

LEAST_ZOOM, MOST_ZOOM = 0.05, 4.0
READABLE = 0.85  # a large graph opens no smaller than this


class GraphView(QGraphicsView):
    """Shows boxes and edges; `picked` tells the key that the user selected."""

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
        self._boxes: tuple[Box, ...] = ()
        self._edges: tuple[tuple[str, str], ...] = ()
        self._items: dict[str, BoxItem] = {}
        self._arrows: list[ArrowItem] = []
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
        theming.changed.connect(self._restyle)
        self._restyle()

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

    def look(self, key: str) -> NodeLook:
        return self._items[key].look

    def show_graph(self, boxes: Sequence[Box], edges: Sequence[tuple[str, str]]) -> None:
        """Draw another graph; nothing happens where it is the one that is drawn. Every edge leads forward."""
        if (tuple(boxes), tuple(edges)) == (self._boxes, self._edges):
            return
        self._boxes, self._edges = tuple(boxes), tuple(edges)
        self.scene().clear()
        self._items, self._arrows = {}, []
        fonts = Fonts(self.font())
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
        self._selected = ""
        self._placed_by_user = False
        self._restyle()
        self._open()

    def show_looks(self, looks: Mapping[str, NodeLook]) -> None:
        """Colours and values of the boxes, by key; those not named are plain."""
        for key, item in self._items.items():
            item.show_look(looks.get(key, NodeLook()))

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
        """For below it."""
        return tool_buttons(
            ("−", "Zoom out (−)", lambda: self.zoom_by(0.8)),
            ("+", "Zoom in (+)", lambda: self.zoom_by(1.25)),
            ("Fit", "Show the whole graph (0)", self.fit),
            ("1:1", "Full size (1)", self.full_size),
        )

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
        top = [self._centre(key).x() for key in self._rows[0]] if self._rows else []
        # Where not all of its width has room, what it begins with is seen.
        middle = sum(top) / len(top) if top and rect.width() > shown.width() else rect.center().x()
        self.centerOn(middle, rect.top() + min(rect.height(), shown.height()) / 2)
        if self._selected:
            self.ensureVisible(self._items[self._selected], 20, 20)

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
