"""What line plots and bar plots share: theme, crosshair with read-out, and a view that holds still.

The view is fitted to the data until the user pans or zooms; from then on it stays as the user left it, and a
double click fits it again. Axes never move for any other reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QHideEvent, QPainter, QPen, QPixmap, QTransform
from PySide6.QtWidgets import QMainWindow, QStyleOptionGraphicsItem, QWidget

from bench.views.charts.definitions import Panel
from bench.words import palette
from gui.base.theme import Theme, Theming
from gui.plots.axes import ScaleAxis
from gui.widgets.labels import Readout

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


GAP = 8  # pixels between the value and its card


def beside(size: QSize, value: QRect, room: QRect) -> QRect | None:
    """A place for a card of this size within the room and off the value's column: at its right, its left,
    above or below it. None: there is none."""
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
    """How many pixels a card may be wide where it has to fit at one side of the value."""
    return max(value.left() - room.left(), room.right() - value.right()) - 2 * GAP


READOUT_WIDTH = 430  # pixels at most; longer lines wrap
LEAST_READOUT = 160
LANE = 20.0  # pixels of the lane where failures stand
SYMBOLS = {"o": "o", "s": "s", "^": "t1", "D": "d", "v": "t", "<": "t3", ">": "t2", "*": "star"}


class PanelPlot(pg.PlotWidget):
    """One panel. `picked` carries (series label, batch) of what was clicked."""

    picked = Signal(str, float)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        self.x_axis, self.y_axis = ScaleAxis("bottom"), ScaleAxis("left")
        axes = {"bottom": self.x_axis, "left": self.y_axis}
        super().__init__(parent, axisItems=axes, enableMenu=False)  # made, menus take longer than all else
        self.theming = theming
        self.panel: Panel | None = None
        self.selected: tuple[str, float] | None = None
        self.hidden: frozenset[str] = frozenset()
        self._touched = False
        self._fitted: tuple[float, float, float, float] | None = None
        item = self.getPlotItem()
        item.hideButtons()
        for side in ("top", "right"):
            item.getAxis(side).unlinkFromView()  # never shown, it would word its label at each change
        item.showGrid(x=True, y=True, alpha=0.25)
        for axis in (self.x_axis, self.y_axis):
            axis.setZValue(-1)  # the grid lies below what is drawn, names among it
        self.box = item.getViewBox()
        self.box.disableAutoRange()
        self.box.sigRangeChangedManually.connect(self._on_touched)
        self.cross = pg.InfiniteLine(angle=90, movable=False)
        self.cross.setZValue(-5)
        self.cross.hide()
        self.addItem(self.cross, ignoreBounds=True)
        self.readout = Readout(theming, self)
        self.scene().sigMouseMoved.connect(self._on_moved)
        self.scene().sigMouseClicked.connect(self._on_clicked)
        self.setMinimumSize(140, 110)
        self.restyle()

    def sizeHint(self) -> QSize:
        """Little, so that a row of charts is not higher than one of charts that are still to come."""
        return self.minimumSize()

    # ------------------------------------------------------------------------------------- for subclasses

    def draw(self) -> None:
        """Put `self.panel` into the items."""
        raise NotImplementedError

    def nearest(self, position: QPointF) -> float | None:
        """The x position of the data nearest to a point of the view."""
        raise NotImplementedError

    def words_at(self, x: float) -> str:
        """What to read out there, as HTML; "" for nothing."""
        raise NotImplementedError

    def pick(self, position: QPointF) -> tuple[str, float] | None:
        """(series label, batch) nearest to a click."""
        raise NotImplementedError

    def place_selection(self) -> None:
        """Mark what is selected (`self.selected`), wherever it stands now."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------ for views

    def select(self, label: str, x: float | None) -> None:
        """Mark a series' point, or a panel's bar, at `x` as selected; None: none is."""
        wanted = (label, x) if x is not None else None
        if wanted != self.selected:
            self.selected = wanted
            if self.panel is not None:
                self.place_selection()

    def show_panel(self, panel: Panel) -> None:
        self.panel = panel
        self.draw()

    def set_hidden(self, hidden: frozenset[str]) -> None:
        """Labels of series, or keys of categories, not to show."""
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
        """Show these bounds (positions), unless the user has a view of his own."""
        wanted = (x0, x1, y0, y1)
        if force:
            self._touched = False
        if self._touched or wanted == self._fitted:
            return
        self._fitted = wanted
        self.box.setRange(xRange=(x0, x1), yRange=(y0, y1), padding=0)

    def reset_view(self) -> None:
        """Back to all of the data."""
        self._touched, self._fitted = False, None
        if self.panel is not None:
            self.draw()

    def read_out(self, x: float | None) -> None:
        """Put the crosshair at a position and say what is there; None takes it away."""
        text = self.words_at(x) if x is not None else ""
        if x is None or not text:
            self.cross.hide()
            self.readout.hide()
            return
        self.cross.setPos(x)
        self.cross.show()
        self.readout.setText(text)
        self._place_readout(x)

    def _place_readout(self, x: float) -> None:
        """Beside the values it reads out, over whatever of the page lies there: a plot may be too small."""
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
        else:  # more than the page has room for: at least the value is left free
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
        """How many pixels to either side of a position its values are drawn."""
        return 14.0

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.read_out(None)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.read_out(None)

    def pixels(self, width: float) -> float:
        """A pen's width: Qt counts a cosmetic pen's in pixels of the device."""
        return width * self.devicePixelRatioF()

    # ------------------------------------------------------------------------------------------ the inside

    def _on_touched(self, *_: object) -> None:
        self._touched = True

    def _on_moved(self, at: QPointF) -> None:
        inside = self.panel is not None and self.box.sceneBoundingRect().contains(at)
        self.read_out(self.nearest(self.box.mapSceneToView(at)) if inside else None)

    def _on_clicked(self, event: Any) -> None:
        if event.button() != Qt.MouseButton.LeftButton or self.panel is None:
            return
        if event.double():
            self.reset_view()
            return
        if self.box.sceneBoundingRect().contains(event.scenePos()):
            found = self.pick(self.box.mapSceneToView(event.scenePos()))
            if found is not None:
                self.picked.emit(*found)


FAINT = 1.5  # a colour's contrast with the paper, below which it sinks into that


def outlined(colour: str, theme: Theme) -> str:
    """What a point or a bar of this colour is outlined by, so that it is seen on the theme's paper: its own
    colour, or where it would sink into the paper a muted one."""
    return colour if palette.contrast(colour, theme.paper) >= FAINT else theme.muted


def line_of(colour: str, label: str, text: str) -> str:
    """One line of a read-out."""
    return f'<div><span style="color:{colour}">■</span> {escape(label)}&nbsp; <b>{escape(text)}</b></div>'


def failure_line(colour: str, label: str, disposition: str, reason: str) -> str:
    words = disposition.replace("_", " ") + (f": {reason}" if reason else "")
    return f'<div><span style="color:{colour}">✕</span> {escape(label)}&nbsp; {escape(words)}</div>'
