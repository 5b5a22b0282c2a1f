"""A wrong answer of a rung, in words and as images: expected, got, how far off, and where."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QResizeEvent
from PySide6.QtWidgets import QComboBox, QGridLayout, QVBoxLayout, QWidget

from bench.results.finding import Finding
from bench.words import units
from gui.base.boxes import filled
from gui.base.theme import Theming
from gui.pages.ladder.error_pictures import ErrorPictures, read
from gui.widgets.colour_scale import Scale
from gui.widgets.flow_layout import FlowLayout
from gui.widgets.labels import Label, labelled
from gui.widgets.map_picture import Cell, MapPanel
from kernels.errors import InputError

LEAST_WIDTH = 160  # pixels of a picture with its scale
PANELS = {"expected": "Expected", "got": "Got", "difference": "|Difference|", "wrong": "Where it is wrong"}


class ErrorMapView(QWidget):
    """`show_finding` fills it."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        self._kept: ErrorPictures | None = None
        self._arrays: dict[str, np.ndarray] = {}
        self.words = Label()
        self.words.setWordWrap(True)
        self.words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.note = Label()
        self.note.setProperty("role", "muted")
        self.note.setWordWrap(True)
        self.readout = Label()
        self.readout.setWordWrap(True)
        self.readout.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.image, self.channel = QComboBox(), QComboBox()
        self._bar = QWidget()
        line = FlowLayout(self._bar, spacing=6)
        for box, text in ((self.image, "I&mage n"), (self.channel, "&Channel m")):
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
            box.activated.connect(self._on_chosen)
            line.addWidget(labelled(box, text))
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
        """The least: in a scroll area the pictures shrink before it scrolls."""
        layout = self.layout()
        return layout.minimumHeightForWidth(width) if layout is not None else -1

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(2 if self.width() >= 2 * LEAST_WIDTH else 1)

    def show_finding(self, finding: Finding, map_path: Path | None) -> None:
        """Show what is wrong; map_path: the file that was kept of the answer (None: there is none). A file
        that cannot be read is said, and the words stand."""
        self.words.setText(sentences(finding))
        self._kept, problem = None, ""
        if map_path is not None:
            try:
                self._kept = read(map_path)
            except InputError as error:
                problem = str(error)
        self.note.setText(problem or ("" if self._kept else "There is no image of this mistake."))
        self._offer()
        self._draw()

    def _arrange(self, columns: int) -> None:
        """The pictures beside each other, or below each other where their scales would not fit."""
        if columns == self._columns:
            return
        self._columns = columns
        for index, panel in enumerate(self.panels.values()):
            self._grid.addWidget(panel, index // columns, index % columns)
            self._grid.setRowStretch(index, 1 if index < -(-len(self.panels) // columns) else 0)
        for column in range(2):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)

    def _offer(self) -> None:
        """The images and channels that were kept, those of the finding chosen."""
        kept = self._kept
        whole = kept is not None and kept.whole
        self._bar.setVisible(whole)
        if kept is None or not whole:
            return
        wrong = kept.counts()
        for box, numbers, counts, chosen in (
            (self.image, kept.images, wrong.sum(axis=1), kept.at[0]),
            (self.channel, kept.channels, wrong.sum(axis=0), kept.at[1]),
        ):
            box.clear()
            for number, count in zip(numbers, counts, strict=True):
                box.addItem(f"{number:,}: {count:,} wrong" if count else f"{number:,}: all right", number)
            box.setCurrentIndex(max(0, box.findData(chosen)))
            box.setEnabled(box.count() > 1)

    def _on_chosen(self) -> None:
        self._draw()

    # ---------------------------------------------------------------------------------------------- drawing

    def _draw(self) -> None:
        kept = self._kept
        self._pictures.setVisible(kept is not None)
        self.readout.setVisible(kept is not None)
        if kept is None:
            return
        if kept.whole:
            self._draw_image(kept)
        else:
            self._arrays = {"difference": kept.error_map}
            self._scaled("difference", self._arrays["difference"], "|Difference|, over all images", 0.0)
        for name, panel in self.panels.items():
            panel.setVisible(name in self._arrays)
        self._on_pointed(None)

    def _draw_image(self, kept: ErrorPictures) -> None:
        image, channel = self.image.currentIndex(), self.channel.currentIndex()
        expected, got = kept.expected[image, channel], kept.got[image, channel]
        with np.errstate(all="ignore"):
            difference = np.abs(got.astype(np.float64) - expected)
        wrong = kept.wrong(image, channel)
        self._arrays = {"expected": expected, "got": got, "difference": difference, "wrong": wrong}
        low, high = (float(end) for end in (expected.min(), expected.max()))
        for name in ("expected", "got"):
            # One scale for both, that of what is right: what a wrong answer has beyond it is at its ends.
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
        if name != "difference" and low < 0 < high:  # nothing is in the middle, the sign to either side
            high = max(-low, high)
            low, kind = -high, "signed"
        scale = Scale(title, kind, low, high, False, value_text, theme, marks)
        self.panels[name].show_array(array, scale, QColor(theme.failed))

    def _on_pointed(self, cell: Cell | None) -> None:
        """Mark a pixel in all pictures and say its values; the finding's where none is pointed at."""
        kept = self._kept
        if kept is None:
            return
        if cell is None and kept.whole:
            here = (self.image.currentData(), self.channel.currentData())
            cell = (kept.at[2] - kept.row, kept.at[3]) if here == kept.at[:2] else None
        for panel in self.panels.values():
            panel.picture.mark(cell)
        self.readout.setText(self._values(kept, cell) if cell is not None else " ")

    def _values(self, kept: ErrorPictures, cell: Cell) -> str:
        row, column = cell[0] + kept.row, cell[1]
        if not kept.whole:
            return f"row {row}, column {column}: off by {value_text(float(kept.error_map[cell]))} at most"
        values = {name: float(array[cell]) for name, array in self._arrays.items() if name != "wrong"}
        verdict = "wrong" if self._arrays["wrong"][cell] else "right"
        place = f"n {self.image.currentData()}, m {self.channel.currentData()}, row {row}, column {column}"
        return (
            f"{place}: expected {values['expected']:.6g}, got {values['got']:.6g}, "
            f"off by {value_text(values['difference'])}: {verdict}"
        )


def value_text(value: float) -> str:
    """A value of an answer, short."""
    return f"{value:.3g}"


def sentences(finding: Finding) -> str:
    """A finding in words: what, where, when, on what, and how much of it; nothing that its reason says."""
    reason = finding.reason
    told = [f"{reason[:1].upper()}{reason[1:]}."]
    if finding.index and not (finding.expected in reason and finding.got in reason):
        place = ", ".join(map(str, finding.index))
        told.append(f"At element ({place}): expected {finding.expected}, got {finding.got}.")
    if finding.elements and not finding.wrong:
        told.append("The answer itself is right.")
    elif finding.elements:
        share = units.percent(finding.wrong / finding.elements, 1)
        count = f"{finding.wrong:,} of {finding.elements:,} elements"
        told.append(f"That is {share} of them." if count in reason else f"{count} are wrong ({share}).")
    seen = [f"seen {finding.when}" if finding.when else "", f"on {finding.params}" if finding.params else ""]
    if any(seen):
        words = " ".join(part for part in seen if part)
        told.append(f"{words[0].upper()}{words[1:]}; the judge calls it “{finding.fault}”.")
    return " ".join(told)
