"""One array as an image: a pixel an element, coloured by a scale, with its legend; the pointer or the arrow
keys mark a pixel."""

from __future__ import annotations

from html import escape
from typing import ClassVar

import numpy as np
from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from gui.base.boxes import filled
from gui.base.theme import Theme
from gui.widgets.colour_scale import Scale, ScaleLegend, blend
from gui.widgets.labels import Label

Cell = tuple[int, int]  # row, column
SHADES = 256
_STEPS = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
}


class MapPicture(QWidget):
    """The image alone. `pointed` carries the Cell under the pointer, None where it left."""

    KEYS: ClassVar = {"↑, ↓, ←, →": "From cell to cell of an error map"}
    pointed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._image = QImage()
        self._theme: Theme | None = None
        self._marked: Cell | None = None
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def show_image(self, image: QImage, theme: Theme) -> None:
        self._image, self._theme = image, theme
        self.update()

    def mark(self, cell: Cell | None) -> None:
        if cell != self._marked:
            self._marked = cell
            self.update()

    @property
    def image(self) -> QImage:
        return self._image

    def sizeHint(self) -> QSize:
        return QSize(220, 180)

    def minimumSizeHint(self) -> QSize:
        return QSize(90, 80)

    def frame(self) -> QRectF:
        """Where the image lies: as large as it fits, its pixels square (to one part in eight at most)."""
        if self._image.isNull():
            return QRectF()
        wide, high = self._image.width(), self._image.height()
        side = min((self.width() - 4) / wide, (self.height() - 4) / high)
        # A row of a thousand values is no line of one pixel's height.
        size = (max(side * wide, 8.0), max(side * high, min(16.0, self.height() - 4.0)))
        return QRectF((self.width() - size[0]) / 2, (self.height() - size[1]) / 2, *size)

    def paintEvent(self, _: QPaintEvent) -> None:
        if self._image.isNull() or self._theme is None:
            return
        painter = QPainter(self)
        frame = self.frame()
        painter.drawImage(frame, self._image)
        painter.setPen(QPen(QColor(self._theme.accent if self.hasFocus() else self._theme.line), 1))
        painter.drawRect(frame)
        if self._marked is not None:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            for colour, wide in ((self._theme.paper, 4.0), (self._theme.ink, 2.0)):
                painter.setPen(QPen(QColor(colour), wide))
                painter.drawRect(self._cell_rect(self._marked))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.pointed.emit(self.cell_at(event.position().x(), event.position().y()))

    def leaveEvent(self, event: QEvent) -> None:
        self.pointed.emit(None)
        super().leaveEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self.update()
        super().focusOutEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = _STEPS.get(Qt.Key(event.key()))
        if step is None or self._image.isNull():
            super().keyPressEvent(event)
            return
        row, column = self._marked or (0, 0)
        row = min(max(0, row + step[0]), self._image.height() - 1)
        self.pointed.emit((row, min(max(0, column + step[1]), self._image.width() - 1)))

    def cell_at(self, x: float, y: float) -> Cell | None:
        frame = self.frame()
        if frame.isEmpty() or not frame.contains(x, y):
            return None
        row = int((y - frame.top()) / frame.height() * self._image.height())
        column = int((x - frame.left()) / frame.width() * self._image.width())
        return min(row, self._image.height() - 1), min(column, self._image.width() - 1)

    def _cell_rect(self, cell: Cell) -> QRectF:
        frame = self.frame()
        wide, high = frame.width() / self._image.width(), frame.height() / self._image.height()
        made = QRectF(frame.left() + cell[1] * wide, frame.top() + cell[0] * high, wide, high)
        return made.adjusted(-1, -1, 1, 1)


class MapPanel(QWidget):
    """A picture with its legend below."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.picture = MapPicture()
        self.picture.setAccessibleName(name)
        self.legend = ScaleLegend()
        self.words = Label()
        self.words.setTextFormat(Qt.TextFormat.RichText)
        self.words.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self.words.setFixedHeight(self.legend.sizeHint().height())
        self.words.hide()
        filled(QVBoxLayout(self), self.legend, self.words, (self.picture, 1), margins=(0, 0, 0, 0), spacing=2)

    def show_array(self, array: np.ndarray, scale: Scale, bad: QColor) -> None:
        """`array` (rows, columns) in the colours of `scale`; what is no number in the colour `bad`."""
        self.legend.show_scale(scale)
        self.picture.show_image(coloured(array, scale, bad), scale.theme)

    def show_mask(self, mask: np.ndarray, title: str, words: tuple[str, str], theme: Theme) -> None:
        """`mask` (rows, columns) in two colours; words: what False and True mean."""
        colours = (theme.line, theme.failed)
        swatches = " &nbsp; ".join(
            f'<span style="color:{colour}">■</span> {escape(word)}'
            for colour, word in zip(colours, words, strict=True)
        )
        self.words.setText(f"{escape(title)}<br>{swatches}")
        self.legend.hide()
        self.words.show()
        fills = [QColor(colour).rgb() for colour in colours]
        self.picture.show_image(image_of(np.where(mask, fills[1], fills[0])), theme)


def coloured(array: np.ndarray, scale: Scale, bad: QColor) -> QImage:
    """An image of a pixel an element (rows, columns) of a linear scale."""
    span = scale.high - scale.low or 1.0
    finite = np.isfinite(array)
    with np.errstate(all="ignore"):
        part = np.clip((np.where(finite, array, scale.low) - scale.low) / span, 0, 1)
    table = np.array([blend(scale.stops, i / (SHADES - 1)).rgb() for i in range(SHADES)], np.uint32)
    pixels = table[(part * (SHADES - 1)).round().astype(np.uint8)]
    pixels[~finite] = bad.rgb()
    return image_of(pixels)


def image_of(pixels: np.ndarray) -> QImage:
    """An image of 0xAARRGGBB pixels (rows, columns) that owns its memory."""
    pixels = np.ascontiguousarray(pixels, np.uint32)
    rows, columns = pixels.shape
    return QImage(pixels.tobytes(), columns, rows, 4 * columns, QImage.Format.Format_RGB32).copy()
