"""A wrong answer of a rung, in words and as images: what was expected, what came, how far off it is, and
where. The pointer or the arrow keys mark a pixel."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import ClassVar

import numpy as np
from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QVBoxLayout, QWidget

from bench.results import npz
from bench.results.finding import Finding
from bench.words import units
from gui.base.boxes import filled, flowing
from gui.base.theme import Theme, Theming
from gui.widgets.colour_scale import Scale, ScaleLegend, blend
from gui.widgets.controls import Combo, Label, labelled
from kernels.errors import InputError, system_words

Cell = tuple[int, int]  # row, column
SHADES = 256
_STEPS = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
}


class MapPicture(QWidget):
    """One image. `pointed` carries the Cell under the pointer, None if it left the image."""

    KEYS: ClassVar = {"↑, ↓, ←, →": "From cell to cell of an error map"}
    pointed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.image = QImage()
        self._theme: Theme | None = None
        self._marked: Cell | None = None
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def show_image(self, image: QImage, theme: Theme) -> None:
        self.image, self._theme = image, theme
        self.update()

    def mark(self, cell: Cell | None) -> None:
        if cell != self._marked:
            self._marked = cell
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(220, 180)

    def minimumSizeHint(self) -> QSize:
        return QSize(90, 80)

    def frame(self) -> QRectF:
        """Where the image is drawn: as large as fits, with square pixels, and at least 8 × 16 screen
        pixels."""
        if self.image.isNull():
            return QRectF()
        wide, high = self.image.width(), self.image.height()
        side = min((self.width() - 4) / wide, (self.height() - 4) / high)
        # A map of one long row must be higher than one pixel.
        size = (max(side * wide, 8.0), max(side * high, min(16.0, self.height() - 4.0)))
        return QRectF((self.width() - size[0]) / 2, (self.height() - size[1]) / 2, *size)

    def paintEvent(self, _: QPaintEvent) -> None:
        if self.image.isNull() or self._theme is None:
            return
        painter = QPainter(self)
        frame = self.frame()
        painter.drawImage(frame, self.image)
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
        if step is None or self.image.isNull():
            super().keyPressEvent(event)
            return
        row, column = self._marked or (0, 0)
        row = min(max(0, row + step[0]), self.image.height() - 1)
        self.pointed.emit((row, min(max(0, column + step[1]), self.image.width() - 1)))

    def cell_at(self, x: float, y: float) -> Cell | None:
        frame = self.frame()
        if frame.isEmpty() or not frame.contains(x, y):
            return None
        row = int((y - frame.top()) / frame.height() * self.image.height())
        column = int((x - frame.left()) / frame.width() * self.image.width())
        return min(row, self.image.height() - 1), min(column, self.image.width() - 1)

    def _cell_rect(self, cell: Cell) -> QRectF:
        frame = self.frame()
        wide, high = frame.width() / self.image.width(), frame.height() / self.image.height()
        rect = QRectF(frame.left() + cell[1] * wide, frame.top() + cell[0] * high, wide, high)
        return rect.adjusted(-1, -1, 1, 1)


class MapPanel(QWidget):
    """An image with its legend above."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.picture = MapPicture()
        self.picture.setAccessibleName(name)
        self.legend = ScaleLegend()
        self.words = Label(rich=True)
        self.words.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self.words.setFixedHeight(self.legend.sizeHint().height())
        self.words.hide()
        filled(QVBoxLayout(self), self.legend, self.words, (self.picture, 1), margins=(0, 0, 0, 0), spacing=2)

    def show_array(self, array: np.ndarray, scale: Scale, bad: QColor) -> None:
        """Show an array (rows, columns) in the colours of a scale. bad: the colour of what is no number."""
        self.legend.show_scale(scale)
        self.picture.show_image(coloured(array, scale, bad), scale.theme)

    def show_mask(self, mask: np.ndarray, title: str, words: tuple[str, str], theme: Theme) -> None:
        """Show a mask (rows, columns) in two colours. words: what False and True mean."""
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
    """An image of an array (rows, columns), one pixel for each element, on a linear scale."""
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


LEAST_WIDTH = 160  # pixels of a picture with its scale
PANELS = {"expected": "Expected", "got": "Got", "difference": "|Difference|", "wrong": "Where it is wrong"}


def _empty() -> np.ndarray:
    return np.zeros((0, 0, 0, 0), np.float32)


@dataclass(frozen=True)
class ErrorPictures:
    """What was kept of a wrong answer. error_map: (rows, columns), the largest |error| over all images and
    channels. expected, got: (k, c, rows, columns) for the images and channels with the numbers in
    `images` and `channels`, from row `row` of the answer on; empty if only the map was kept. at: image,
    channel, row and column of the finding. tolerance: a larger difference is wrong."""

    error_map: np.ndarray
    expected: np.ndarray = field(default_factory=_empty)
    got: np.ndarray = field(default_factory=_empty)
    images: tuple[int, ...] = ()
    channels: tuple[int, ...] = ()
    row: int = 0
    at: tuple[int, ...] = (0, 0, 0, 0)
    tolerance: float = 0.0

    @property
    def whole(self) -> bool:
        """Whether images of the answer were kept, and not only the map."""
        return self.got.size > 0

    def wrong(self, image: int, channel: int) -> np.ndarray:
        """Which elements are wrong, as a mask (rows, columns). image, channel: indices into the kept ones."""
        got, expected = self.got[image, channel], self.expected[image, channel]
        with np.errstate(all="ignore"):
            return ~(np.abs(got.astype(np.float64) - expected) <= self.tolerance)

    def counts(self) -> np.ndarray:
        """How many elements are wrong, by image and channel: (k, c)."""
        with np.errstate(all="ignore"):
            off = ~(np.abs(self.got - self.expected) <= self.tolerance)
        return off.sum(axis=(2, 3))


def _read(path: Path) -> ErrorPictures:
    """Read the file of a wrong answer. Raises InputError if it is missing or broken."""
    try:
        arrays = npz.arrays(path)
        if "got" not in arrays:
            return ErrorPictures(arrays["error_map"])
        pictures = ErrorPictures(
            error_map=arrays["error_map"],
            expected=arrays["expected"],
            got=arrays["got"],
            images=tuple(int(i) for i in arrays["images"]),
            channels=tuple(int(i) for i in arrays["channels"]),
            row=int(arrays["row"]),
            at=tuple(int(i) for i in arrays["at"]),
            tolerance=float(arrays["tolerance"]),
        )
    except OSError as error:
        raise InputError(f"the error map cannot be read: {system_words(error)}") from error
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise InputError(f"the error map {path.name} is broken ({error})") from error
    known = (len(pictures.images), len(pictures.channels))
    if (
        pictures.got.ndim != 4
        or pictures.got.shape != pictures.expected.shape
        or pictures.got.shape[:2] != known
    ):
        raise InputError(f"the error map {path.name} is broken (its arrays do not fit each other)")
    return pictures


class ErrorMapView(QWidget):
    """Shows a wrong answer. `show_finding` fills it."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        self._answer: ErrorPictures | None = None
        self._arrays: dict[str, np.ndarray] = {}
        self.words = Label(wrap=True, selectable=True)
        self.note = Label(role="muted", wrap=True)
        self.readout = Label(wrap=True, selectable=True)
        self.image, self.channel = (Combo(chosen=lambda _: self._draw()) for _ in range(2))
        self._bar = QWidget()
        fields = {"I&mage n": self.image, "&Channel m": self.channel}
        flowing(self._bar, *(labelled(box, words) for words, box in fields.items()), spacing=6)
        self.panels = {name: MapPanel(words) for name, words in PANELS.items()}
        self._pictures = QWidget()
        self._grid = QGridLayout(self._pictures)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._columns = 0
        self._arrange(2)
        for panel in self.panels.values():
            panel.picture.pointed.connect(self._on_pointed)
        filled(
            QVBoxLayout(self),
            self.words,
            self._bar,
            (self._pictures, 1),
            self.readout,
            self.note,
            0,
            margins=(0, 0, 0, 0),
        )
        theming.changed.connect(self._draw)

    def minimumSizeHint(self) -> QSize:
        return QSize(min(LEAST_WIDTH, super().minimumSizeHint().width()), super().minimumSizeHint().height())

    def heightForWidth(self, width: int) -> int:
        """The smallest height, so that in a scroll area the pictures shrink before it scrolls."""
        layout = self.layout()
        return layout.minimumHeightForWidth(width) if layout is not None else -1

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(2 if self.width() >= 2 * LEAST_WIDTH else 1)

    def show_finding(self, finding: Finding, map_path: Path | None) -> None:
        """Show what is wrong. map_path: the file with the kept answer, None if there is none. If it cannot
        be read, a note says so below the words."""
        self.words.setText(sentences(finding))
        self._answer, problem = None, ""
        if map_path is not None:
            try:
                self._answer = _read(map_path)
            except InputError as error:
                problem = str(error)
        self.note.setText(problem or ("" if self._answer else "There is no image of this mistake."))
        self._offer()
        self._draw()

    def _arrange(self, columns: int) -> None:
        """Put the pictures into this many columns."""
        if columns == self._columns:
            return
        self._columns = columns
        for index, panel in enumerate(self.panels.values()):
            self._grid.addWidget(panel, index // columns, index % columns)
            self._grid.setRowStretch(index, 1 if index < -(-len(self.panels) // columns) else 0)
        for column in range(2):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)

    def _offer(self) -> None:
        """Offer the kept images and channels; choose those of the finding."""
        pictures = self._answer
        whole = pictures is not None and pictures.whole
        self._bar.setVisible(whole)
        if pictures is None or not whole:
            return
        wrong = pictures.counts()
        for box, numbers, counts, chosen in (
            (self.image, pictures.images, wrong.sum(axis=1), pictures.at[0]),
            (self.channel, pictures.channels, wrong.sum(axis=0), pictures.at[1]),
        ):
            words = [f"{count:,} wrong" if count else "all right" for count in counts]
            box.offer(
                {n: f"{n:,}: {count_words}" for n, count_words in zip(numbers, words, strict=True)}, chosen
            )
            box.setEnabled(len(numbers) > 1)

    # ---------------------------------------------------------------------------------------------- drawing

    def _draw(self) -> None:
        pictures = self._answer
        self._pictures.setVisible(pictures is not None)
        self.readout.setVisible(pictures is not None)
        if pictures is None:
            return
        if pictures.whole:
            self._draw_image(pictures)
        else:
            self._arrays = {"difference": pictures.error_map}
            self._scaled("difference", self._arrays["difference"], "|Difference|, over all images", 0.0)
        for name, panel in self.panels.items():
            panel.setVisible(name in self._arrays)
        self._on_pointed(None)

    def _draw_image(self, pictures: ErrorPictures) -> None:
        image, channel = self.image.currentIndex(), self.channel.currentIndex()
        expected, got = pictures.expected[image, channel], pictures.got[image, channel]
        with np.errstate(all="ignore"):
            difference = np.abs(got.astype(np.float64) - expected)
        wrong = pictures.wrong(image, channel)
        self._arrays = {"expected": expected, "got": got, "difference": difference, "wrong": wrong}
        low, high = (float(end) for end in (expected.min(), expected.max()))
        for name in ("expected", "got"):
            # Both have the scale of the expected values; values beyond it get the colours at its ends.
            self._scaled(name, self._arrays[name], PANELS[name], low, high)
        self._scaled("difference", difference, PANELS["difference"], 0.0)
        theme = self._theming.theme
        share = units.percent(float(wrong.mean()), 1)
        self.panels["wrong"].show_mask(wrong, f"{PANELS['wrong']}: {share}", ("right", "wrong"), theme)

    def _scaled(
        self, name: str, array: np.ndarray, title: str, low: float, high: float | None = None
    ) -> None:
        theme = self._theming.theme
        finite = array[np.isfinite(array)]
        if high is None:
            high = float(finite.max(initial=0.0))
        marks = (("no number", theme.failed),) if finite.size < array.size else ()
        kind = "error" if name == "difference" else "time"
        if name != "difference" and low < 0 < high:  # 0 is in the middle of the scale
            high = max(-low, high)
            low, kind = -high, "signed"
        scale = Scale(title, kind, low, high, False, value_text, theme, marks)
        self.panels[name].show_array(array, scale, QColor(theme.failed))

    def _on_pointed(self, cell: Cell | None) -> None:
        """Mark a pixel in all pictures and show its values. With None, mark that of the finding."""
        pictures = self._answer
        if pictures is None:
            return
        if cell is None and pictures.whole:
            here = (self.image.currentData(), self.channel.currentData())
            cell = (pictures.at[2] - pictures.row, pictures.at[3]) if here == pictures.at[:2] else None
        for panel in self.panels.values():
            panel.picture.mark(cell)
        self.readout.setText(self._values(pictures, cell) if cell is not None else " ")

    def _values(self, pictures: ErrorPictures, cell: Cell) -> str:
        row, column = cell[0] + pictures.row, cell[1]
        if not pictures.whole:
            return f"row {row}, column {column}: off by {value_text(float(pictures.error_map[cell]))} at most"
        values = {name: float(array[cell]) for name, array in self._arrays.items() if name != "wrong"}
        verdict = "wrong" if self._arrays["wrong"][cell] else "right"
        place = f"n {self.image.currentData()}, m {self.channel.currentData()}, row {row}, column {column}"
        return (
            f"{place}: expected {values['expected']:.6g}, got {values['got']:.6g}, "
            f"off by {value_text(values['difference'])}: {verdict}"
        )


def value_text(value: float) -> str:
    """A value in three digits."""
    return f"{value:.3g}"


def sentences(finding: Finding) -> str:
    """A finding in sentences: what, where, when, on what, and how much. Nothing that its reason already
    says is repeated."""
    reason = finding.reason
    parts = [f"{reason[:1].upper()}{reason[1:]}."]
    if finding.index and not (finding.expected in reason and finding.got in reason):
        place = ", ".join(map(str, finding.index))
        parts.append(f"At element ({place}): expected {finding.expected}, got {finding.got}.")
    if finding.elements and not finding.wrong:
        parts.append("The answer itself is right.")
    elif finding.elements:
        share = units.percent(finding.wrong / finding.elements, 1)
        count = f"{finding.wrong:,} of {finding.elements:,} elements"
        parts.append(f"That is {share} of them." if count in reason else f"{count} are wrong ({share}).")
    seen = [f"seen {finding.when}" if finding.when else "", f"on {finding.params}" if finding.params else ""]
    if any(seen):
        words = " ".join(part for part in seen if part)
        parts.append(f"{words[0].upper()}{words[1:]}; the judge calls it “{finding.fault}”.")
    return " ".join(parts)
