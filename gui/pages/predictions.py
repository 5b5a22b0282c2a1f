"""Predictions: the images with their labels and every contender's answer; filters; the confusion matrix.

Files of a run are read in a thread: 10,000 images take longer than the window may wait. The grid draws only
images that are visible."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import (
    QAbstractListModel,
    QAbstractTableModel,
    QEvent,
    QModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter, QPaintEvent, QPen, QPixmap, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from bench.results import gallery
from bench.results.gallery import Answers, Images
from bench.results.records import Case, Measurement
from bench.results.rows import label, title
from bench.views.sentences.verdicts import CROWDED
from bench.words import palette, units
from gui.base.background import Background
from gui.base.boxes import HORIZONTAL, as_column, filled, splitter
from gui.base.theme import PAGE_MARGINS, Theme, Theming
from gui.pages.page import Page
from gui.widgets.colour_scale import blend, ink_on
from gui.widgets.controls import ChoiceBar, Label, as_tip, push_button
from gui.widgets.table_view import NO_INDEX, Index
from kernels.errors import KernelscopeError

SHOWN = {
    "all": "All images",
    "wrong": "Wrong on any backend",
    "wrong here": "Wrong on the one chosen",
    "disagree": "Backends disagree",
}
ORDERS = {
    "index": "As in the data set",
    "unsure": "Least confident first",
    "sure": "Most confident first",
}


@dataclass(frozen=True)
class Filter:
    """Which images to show. label: a class, None for all; cell: (label, predicted) for the contender in
    focus."""

    shown: str = "all"
    label: int | None = None
    cell: tuple[int, int] | None = None
    order: str = "index"


@dataclass(frozen=True, eq=False)
class Answered:
    """The answers of contenders, all to the same images. images: None if the run has not kept them;
    problems: what could not be read, in sentences."""

    names: tuple[str, ...]
    answers: tuple[Answers, ...]
    images: Images | None
    problems: tuple[str, ...] = ()

    def __len__(self) -> int:
        return min((len(answers) for answers in self.answers), default=0)

    @property
    def labels(self) -> np.ndarray:
        """int64 (images,), -1 for unknown."""
        return self.answers[0].label[: len(self)] if self.answers else np.empty(0, np.int64)

    @property
    def labelled(self) -> bool:
        return len(self) > 0 and bool((self.labels >= 0).all())

    @property
    def predicted(self) -> np.ndarray:
        """int64 (contenders, images)."""
        return np.stack([answers.predicted[: len(self)] for answers in self.answers])

    def classes(self) -> list[int]:
        """All classes that are a label or an answer, sorted."""
        return [int(c) for c in np.unique(np.concatenate([self.labels, self.predicted.ravel()])) if c >= 0]

    def class_name(self, label: int) -> str:
        names = self.images.classes if self.images is not None else ()
        if label < 0:
            return "?"
        return names[label] if label < len(names) else str(label)

    def chosen(self, wanted: Filter, focus: int) -> np.ndarray:
        """The indices of the images that a filter chooses, in its order. focus: index of a contender."""
        if not len(self):
            return np.empty(0, np.int64)
        predicted, labels = self.predicted, self.labels
        mask = np.ones(len(self), bool)
        if wanted.shown == "wrong":
            mask &= ((predicted != labels) & (labels >= 0)).any(axis=0)
        elif wanted.shown == "wrong here":
            mask &= (predicted[focus] != labels) & (labels >= 0)
        elif wanted.shown == "disagree":
            mask &= (predicted != predicted[0]).any(axis=0)
        if wanted.label is not None:
            mask &= (labels if self.labelled else predicted[focus]) == wanted.label
        if wanted.cell is not None:
            mask &= (labels == wanted.cell[0]) & (predicted[focus] == wanted.cell[1])
        indices = np.flatnonzero(mask)
        if wanted.order != "index":
            confidence = self.answers[focus].confidence[indices]
            indices = indices[
                np.argsort(confidence if wanted.order == "unsure" else -confidence, kind="stable")
            ]
        return indices

    def confusion(self, focus: int) -> np.ndarray:
        """Counts (classes, classes) of `classes()`: one row for each label, one column for each answer."""
        classes = np.array(self.classes(), np.int64)
        known = self.labels >= 0
        rows = np.searchsorted(classes, self.labels[known])
        columns = np.searchsorted(classes, self.predicted[focus][known])
        counts = np.zeros((len(classes), len(classes)), np.int64)
        np.add.at(counts, (rows, columns), 1)
        return counts


@dataclass(frozen=True)
class Files:
    """Which files to read: the answers by contender, and the images. stamps: differ if a file was written
    again."""

    answers: tuple[tuple[str, Path], ...] = ()
    images: Path | None = None
    stamps: tuple[str, ...] = ()


def read_answers(files: Files) -> Answered:
    """Read all that can be read; `problems` says what cannot."""
    names, answers, problems = [], [], []
    for name, path in files.answers:
        try:
            answers.append(gallery.load_answers(path))
            names.append(name)
        except KernelscopeError as error:
            problems.append(str(error))
    images = None
    if files.images is not None and files.images.is_file():
        try:
            images = gallery.load_images(files.images)
        except KernelscopeError as error:
            problems.append(str(error))
    elif answers:
        problems.append("this run has not kept its images; their answers are shown without them")
    return Answered(tuple(names), tuple(answers), images, tuple(problems))


def agreeing(answered: Answered) -> int:
    """The number of images to which all contenders give the same answer."""
    return int((answered.predicted == answered.predicted[0]).all(axis=0).sum()) if len(answered) else 0


SIDE = 64  # of an image as drawn, in logical pixels
PAD = 6
NOTHING = Answered((), (), None)


def picture(answered: Answered, index: int) -> QImage | None:
    """The image of this index, None if the run has not kept it."""
    images = answered.images
    if images is None or index >= len(images):
        return None
    pixels = np.ascontiguousarray(images.pixels[index])
    height, width = pixels.shape[:2]
    colour = pixels.ndim == 3
    form = QImage.Format.Format_RGB888 if colour else QImage.Format.Format_Grayscale8
    return QImage(pixels.tobytes(), width, height, width * (3 if colour else 1), form).copy()


class AnswerModel(QAbstractListModel):
    """The chosen images, by their index in the data set."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.answered = NOTHING
        self.indices: np.ndarray = np.empty(0, np.int64)

    def show_images(self, answered: Answered, indices: np.ndarray) -> None:
        self.beginResetModel()
        self.answered, self.indices = answered, indices
        self.endResetModel()

    def rowCount(self, parent: Index = NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.indices)

    def data(self, index: Index, role: int = 0) -> Any:
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            text = image_words(self.answered, int(self.indices[index.row()]))
            return as_tip(text) if role == Qt.ItemDataRole.ToolTipRole else text
        return None


def image_words(answered: Answered, index: int) -> str:
    """What is known of an image, in lines. A screen reader reads this, too."""
    label = int(answered.labels[index])
    lines = [f"image {index:,}" + (f", {answered.class_name(label)}" if label >= 0 else "")]
    for name, answers in zip(answered.names, answered.answers, strict=True):
        predicted = int(answers.predicted[index])
        mark = "" if label < 0 else " ✓" if predicted == label else " ✕"
        sure = units.percent(float(answers.confidence[index]), 1)
        lines.append(f"{name}: {answered.class_name(predicted)}, {sure}{mark}")
    return "\n".join(lines)


class AnswerDelegate(QStyledItemDelegate):
    """Draws a cell: the image, its label and all answers."""

    def __init__(self, theming: Theming, parent: QWidget) -> None:
        super().__init__(parent)
        self._theming = theming
        self._size = QSize(SIDE + 2 * PAD, SIDE + 2 * PAD)

    def measure(self, answered: Answered, metrics: QFontMetrics) -> None:
        """Make cells wide enough for the longest class name."""
        classes = answered.classes() if len(answered) else []
        longest = max((metrics.horizontalAdvance(answered.class_name(c)) for c in classes), default=0)
        wide = metrics.height() + longest + metrics.horizontalAdvance("  100 %")
        lines = 1 + len(answered.names)
        self._size = QSize(
            max(SIDE, min(wide, 3 * SIDE)) + 2 * PAD + 4, SIDE + 2 * PAD + lines * metrics.height() + 4
        )

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return self._size

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, at: Index) -> None:
        model = at.model()
        assert isinstance(model, AnswerModel)
        answered, index = model.answered, int(model.indices[at.row()])
        cell: QRect = option.rect.adjusted(2, 2, -2, -2)
        state: QStyle.StateFlag = option.state
        chosen = bool(state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        label = int(answered.labels[index])
        wrong = label >= 0 and any(int(a.predicted[index]) != label for a in answered.answers)
        self._frame(painter, cell, wrong, chosen)
        self._image(painter, cell, answered, index)
        self._lines(painter, cell, answered, index, label)
        painter.restore()

    def _frame(self, painter: QPainter, cell: QRect, wrong: bool, chosen: bool) -> None:
        theme = self._theming.theme
        painter.setBrush(QColor(theme.alternate))
        if chosen:
            painter.setPen(QPen(QColor(theme.accent), 2.5))
        else:
            painter.setPen(QPen(QColor(theme.failed if wrong else theme.line), 1))
        painter.drawRoundedRect(QRectF(cell).adjusted(1, 1, -1, -1), 4, 4)

    def _image(self, painter: QPainter, cell: QRect, answered: Answered, index: int) -> None:
        box = QRectF(cell.left() + (cell.width() - SIDE) / 2, cell.top() + PAD, SIDE, SIDE)
        image = picture(answered, index)
        if image is None:
            painter.setPen(QPen(QColor(self._theming.theme.line), 1, Qt.PenStyle.DashLine))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(box)
            painter.setPen(QColor(self._theming.theme.muted))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, "not kept")
            return
        scale = min(SIDE / image.width(), SIDE / image.height())
        size = (image.width() * scale, image.height() * scale)
        at = QRectF(box.center().x() - size[0] / 2, box.center().y() - size[1] / 2, *size)
        painter.drawImage(at, image)

    def _lines(self, painter: QPainter, cell: QRect, answered: Answered, index: int, label: int) -> None:
        theme, metrics = self._theming.theme, painter.fontMetrics()
        line, dot = metrics.height(), round(0.55 * metrics.height())
        box = QRect(cell.left() + PAD, cell.top() + PAD + SIDE + 2, cell.width() - 2 * PAD, line)
        painter.setPen(QColor(theme.muted))
        painter.drawText(box, Qt.AlignmentFlag.AlignRight, f"{index:,}")
        left = box.width() - metrics.horizontalAdvance(f"{index:,}") - 4
        painter.setPen(QColor(theme.ink))
        name = metrics.elidedText(answered.class_name(label), Qt.TextElideMode.ElideRight, left)
        painter.drawText(box, Qt.AlignmentFlag.AlignLeft, name)
        for contender, answers in zip(answered.names, answered.answers, strict=True):
            box.translate(0, line)
            predicted = int(answers.predicted[index])
            wrong = label >= 0 and predicted != label
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(palette.backend(contender.partition(" ")[0])))
            painter.drawRect(box.left(), box.top() + (line - dot) // 2, dot, dot)
            sure = units.percent(float(answers.confidence[index]), 0)
            painter.setPen(QColor(theme.muted))
            painter.drawText(box, Qt.AlignmentFlag.AlignRight, sure)
            room = box.width() - dot - 4 - metrics.horizontalAdvance(sure) - 4
            painter.setPen(QColor(theme.failed if wrong else theme.ink))
            name = ("✕ " if wrong else "") + answered.class_name(predicted)
            painter.drawText(
                box.adjusted(dot + 4, 0, 0, 0),
                Qt.AlignmentFlag.AlignLeft,
                metrics.elidedText(name, Qt.TextElideMode.ElideRight, room),
            )


class AnswerGrid(QListView):
    """The grid. `picked` carries the index of the image that the user went to. nothing: what it says if no
    image is chosen."""

    picked = Signal(int)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        theming.changed.connect(self.viewport().update)
        self.source = AnswerModel(self)
        self.delegate = AnswerDelegate(theming, self)
        self.nothing = ""
        self.setModel(self.source)
        self.setItemDelegate(self.delegate)
        self.setViewMode(QListView.ViewMode.IconMode)
        self.setMovement(QListView.Movement.Static)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setUniformItemSizes(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setSpacing(1)
        self.setAccessibleName("Images")
        self.selectionModel().currentChanged.connect(self._on_current)

    def show_images(self, answered: Answered, indices: np.ndarray) -> None:
        """Show these images. If they are shown already, the scroll position stays."""
        if answered is self.source.answered and np.array_equal(indices, self.source.indices):
            return
        if answered is not self.source.answered:
            self.delegate.measure(answered, self.fontMetrics())
        self.source.show_images(answered, indices)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.source.rowCount() == 0 and self.nothing:
            painter = QPainter(self.viewport())
            painter.setPen(QColor(self._theming.theme.muted))
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self.viewport().rect().adjusted(30, 30, -30, -30), flags, self.nothing)

    def _on_current(self, current: QModelIndex) -> None:
        if current.isValid():
            self.picked.emit(int(self.source.indices[current.row()]))


LARGE = 160  # of the image, in logical pixels


class AnswerDetail(QWidget):
    """One image, enlarged, with all that is known of it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.picture = Label()
        self.picture.setFixedSize(LARGE, LARGE)
        self.picture.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.facts = Label(wrap=True, selectable=True, rich=True)
        self.facts.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        filled(
            QHBoxLayout(self),
            (self.picture, 0, Qt.AlignmentFlag.AlignTop),
            (self.facts, 1),
            margins=(0, 0, 0, 0),
        )

    def show_image(self, answered: Answered, index: int, theme: Theme) -> None:
        """Show the image with this index in the data set; hide if there is none."""
        known = 0 <= index < len(answered)
        self.setVisible(known)
        if not known:
            return
        image = picture(answered, index)
        self.picture.setVisible(image is not None)
        if image is not None:
            ratio = self.devicePixelRatioF()
            side = round(LARGE * ratio)
            pixmap = QPixmap.fromImage(image).scaled(side, side, Qt.AspectRatioMode.KeepAspectRatio)
            pixmap.setDevicePixelRatio(ratio)
            self.picture.setPixmap(pixmap)
        self.facts.setText(image_facts(answered, index, theme))


def image_facts(answered: Answered, index: int, theme: Theme) -> str:
    """What is known of an image, as HTML: two lines for each contender, or one if there are many, so that
    the confusion matrix keeps its room."""
    between = "<br>" if len(answered.names) <= CROWDED else "&nbsp; "
    label = int(answered.labels[index])
    label_name = escape(answered.class_name(label)) if label >= 0 else "unknown"
    lines = [f"<b>Image {index:,}</b>", f"label: <b>{label_name}</b>"]
    for name, answers in zip(answered.names, answered.answers, strict=True):
        predicted = int(answers.predicted[index])
        wrong = label >= 0 and label != predicted
        mark = "" if label < 0 else "✕ " if wrong else "✓ "
        best = ", label in its top 5" if wrong and answers.top5[index] else ""
        sure = units.percent(float(answers.confidence[index]), 2)
        swatch = palette.backend(name.partition(" ")[0])
        colour = theme.failed if wrong else theme.ink
        answer = f"{mark}{escape(answered.class_name(predicted))}"
        who = f'<span style="color:{swatch}">■</span> {escape(name)}'
        lines.append(f'{who}{between}<span style="color:{colour}">{answer}</span>, {sure}{best}')
    return "<br>".join(lines)


class ConfusionModel(QAbstractTableModel):
    """The counts of the confusion matrix, with their colours."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        self.counts: np.ndarray = np.zeros((0, 0), np.int64)
        self.classes: list[int] = []
        self.names: list[str] = []

    def show_answers(self, answered: Answered, focus: int) -> None:
        self.beginResetModel()
        labelled = answered.labelled
        self.classes = answered.classes() if labelled else []
        self.counts = answered.confusion(focus) if labelled else np.zeros((0, 0), np.int64)
        self.names = [answered.class_name(c) for c in self.classes]
        self.endResetModel()

    def rowCount(self, parent: Index = NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.classes)

    def columnCount(self, parent: Index = NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.classes)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> Any:
        if section >= len(self.classes):
            return None
        name, number = self.names[section], str(self.classes[section])
        if role == Qt.ItemDataRole.DisplayRole:
            if orientation == Qt.Orientation.Horizontal:
                return number  # names would make the columns wide
            return number if name == number else f"{number}  {name}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return as_tip(f"{'taken for' if orientation == Qt.Orientation.Horizontal else 'label'} {name}")
        return None

    def data(self, index: Index, role: int = 0) -> Any:
        count = int(self.counts[index.row(), index.column()])
        if role == Qt.ItemDataRole.DisplayRole:
            return f"{count:,}" if count else ""
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(Qt.AlignmentFlag.AlignCenter)
        if role == Qt.ItemDataRole.BackgroundRole:
            return self._fill(index.row(), index.column())
        if role == Qt.ItemDataRole.ForegroundRole and count:
            return ink_on(self._fill(index.row(), index.column()))
        if role == Qt.ItemDataRole.ToolTipRole:
            return as_tip(self._tip(index.row(), index.column(), count))
        return None

    def _fill(self, row: int, column: int) -> QColor:
        """The colour of a cell: right answers towards that of what is good, wrong ones towards the colour of
        failures, by their share of the label's images. For wrong ones the root of the share is used, so
        that few of many can be seen."""
        theme = self._theming.theme
        total, count = int(self.counts[row].sum()), int(self.counts[row, column])
        if not count:
            return QColor(theme.alternate if row == column else theme.paper)
        right = row == column
        share = count / total if right else 0.25 + 0.75 * math.sqrt(count / total)
        return blend((theme.paper, theme.good if right else theme.failed), share)

    def _tip(self, row: int, column: int, count: int) -> str:
        of = int(self.counts[row].sum())
        share = f" ({count / of:.1%})" if of else ""
        verb = "are answered right" if row == column else f"are taken for {self.names[column]}"
        return f"{count:,} of {of:,} images of {self.names[row]}{share} {verb}"


class ConfusionTable(QTableView):
    """The confusion matrix: a row for each label, a column for each answer. `picked` carries (label,
    predicted) of the cell that was clicked or entered."""

    picked = Signal(int, int)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.source = ConfusionModel(theming, self)
        theming.changed.connect(self.viewport().update)
        self.setModel(self.source)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setTabKeyNavigation(False)
        self.setAccessibleName("Confusion matrix: one row per label, one column per answer")
        self.setCornerButtonEnabled(False)
        for header in (self.horizontalHeader(), self.verticalHeader()):
            header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
            header.setSectionsClickable(False)
            header.setHighlightSections(True)
        self.horizontalHeader().setMinimumSectionSize(10)
        self.verticalHeader().setMinimumSectionSize(10)
        self.verticalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.clicked.connect(self._on_entered)
        self.activated.connect(self._on_entered)

    def show_answers(self, answered: Answered, focus: int) -> None:
        self.source.show_answers(answered, focus)
        self._give_room()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._give_room()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._give_room()

    def _give_room(self) -> None:
        """Cells as large as their letters, and up to LARGEST times as large where all of them have room."""
        metrics = self.fontMetrics()
        most = f"{int(self.source.counts.max(initial=0)):,}"
        widest = max([most, *map(str, self.source.classes)], key=metrics.horizontalAdvance)
        margin = self.style().pixelMetric(QStyle.PixelMetric.PM_FocusFrameHMargin) + 1  # the delegate's
        wide = metrics.horizontalAdvance(widest) + 2 * margin + 2
        wide, high = max(metrics.height() + 6, wide), metrics.height() + 7
        count = max(1, len(self.source.classes))
        room = self.maximumViewportSize()
        across = (room.width() - self.verticalHeader().width()) / (count * wide)
        along = (room.height() - self.horizontalHeader().height()) / (count * high)
        times = max(1.0, min(LARGEST, across, along))
        self.horizontalHeader().setDefaultSectionSize(int(times * wide))
        self.verticalHeader().setDefaultSectionSize(int(times * high))

    def _on_entered(self, index: QModelIndex) -> None:
        if index.isValid():
            self.picked.emit(self.source.classes[index.row()], self.source.classes[index.column()])


LARGEST = 1.6  # times the size that a cell's letters need


ORDER = 30


class PredictionsPage(Page):
    """The page of images and answers."""

    title = "Predictions"

    def empty_text(self) -> str:
        if self.state.empty:
            return (
                "The images, each with its label and what every backend took it for: they appear here as a "
                "comparison is measured (F5)."
            )
        if any(_answered(m) for m in self.state.measurements):
            return "The images and answers of this run are not kept: its folder has no file of them."
        return (
            "No case of this run has answered images yet. They come at the end of each case, where the model "
            "takes images and the number of images is not 0."
        )

    def has_content(self) -> bool:
        return any(map(self._readable, self.state.measurements))

    def _readable(self, measurement: Measurement) -> bool:
        """Whether a case's answers are on the disk. A thinned run keeps those of a few cases only."""
        folder = self.state.folder
        return (
            _answered(measurement)
            and folder is not None
            and gallery.answers_path(folder, measurement.case).is_file()
        )

    def build(self) -> QWidget:
        self._answered, self._files = NOTHING, Files()
        self._cases: dict[str, Case] = {}
        self._refused = ""  # why labels say nothing of these answers
        self._cell: tuple[int, int] | None = None
        self._of: object = None  # the run and model for which a filter was chosen
        self._image = -1  # the selected one's index in the data set
        self._confused = (NOTHING, -1)  # what the matrix shows
        self.reading = Background(lambda _: None, self)  # errors are shown among the answers
        self._bar = ChoiceBar(
            [
                ("model", "&Model"),
                ("images", "Ima&ges"),
                ("batch", "&Batch"),
                ("focus", "B&ackend"),
                ("shown", "&Show"),
                ("label", "&Class"),
                ("order", "&Order"),
            ]
        )
        self._bar.chosen.connect(self._on_chosen)
        self._choices = self._bar.boxes
        self._choices["shown"].offer(SHOWN)
        self._choices["order"].offer(ORDERS)
        self.state.model_chosen.connect(self._follow)
        self.grid = AnswerGrid(self.theming)
        self.grid.picked.connect(self._on_image)
        self.count = Label(role="muted", wrap=True)
        self.reset = push_button("Show a&ll", lambda: self._show_all(), tip="Remove all filters")
        self.confusion = ConfusionTable(self.theming)
        self.confusion.picked.connect(self._on_cell)
        self.detail = AnswerDetail()
        self._heading = Label(role="heading")
        self._hint = Label(
            "Row: label. Column: answer. Green: right. Red, and ✕ at an image: wrong. A click on a cell "
            "shows its images.",
            role="muted",
            wrap=True,
        )
        left = as_column(filled(QHBoxLayout(), (self.count, 1), self.reset), (self.grid, 1))
        right = as_column(self._heading, self._hint, (self.confusion, 1), self.detail)
        split = splitter("predictions-columns", HORIZONTAL, left, right, sizes=[520, 480], stretch=(3, 2))
        return as_column(self._bar, (split, 1), margins=PAGE_MARGINS)

    # ---------------------------------------------------------------------------------------------- showing

    def refresh(self) -> None:
        ours = [m for m in self.state.measurements if self._readable(m)]
        model = self._bar.offer("model", {m.case.model: title(m.case.model) for m in ours})
        ours = [m for m in ours if m.case.model == model]
        most_first = sorted({m.case.images for m in ours}, reverse=True)
        images = self._bar.offer("images", {n: f"{n:,}" for n in most_first})
        ours = [m for m in ours if m.case.images == images]
        batch = self._bar.offer("batch", {b: f"{b:,}" for b in sorted({m.case.batch for m in ours})})
        beside = contenders(ours, int(batch))  # type: ignore[call-overload]
        self._cases = {name: m.case for name, m in beside.items()}
        self._refused = next((m.accuracy.refused for m in beside.values() if m.accuracy), "")
        self._bar.offer("focus", {name: name for name in beside})
        folder, case = self.state.folder, next(iter(self._cases.values()))
        assert folder is not None
        dataset = next((info.dataset for info in self.state.run.models if info.name == model), "")
        # If a case is measured again, its answers are written again; the start time differs then.
        files = Files(
            tuple((n, gallery.answers_path(folder, c)) for n, c in self._cases.items()),
            gallery.images_path(folder, dataset, case) if dataset else None,
            tuple(m.started_at for m in beside.values()),
        )
        if files != self._files:
            self._files = files
            self.reading.start("answers", lambda: read_answers(files), self._on_read)
            if not len(self._answered):
                self.grid.nothing = "Reading the images …"
        else:
            self._show()

    def _follow(self, model: str) -> None:
        """Another page shows this model now."""
        if self._body is not None and self._bar.ask({"model": model}):
            self.invalidate()

    def select(self) -> None:
        case = self.state.case
        measurement = self.state.measurement(case)
        if case is None or measurement is None or not self._readable(measurement):
            return
        wanted: dict[str, object] = {"model": case.model, "images": case.images, "batch": case.batch}
        wanted["focus"] = name_of(case)
        if self._bar.ask(wanted):
            self.invalidate()

    def showcase(self) -> None:
        if self._body is None:
            return
        for filter_key in ("wrong", "all"):  # if none is wrong, the first image
            self._choices["shown"].choose(filter_key)
            self._show()
            if self.grid.source.rowCount():
                self.grid.setCurrentIndex(self.grid.source.index(0))
                return

    @property
    def at_rest(self) -> bool:
        return self._body is None or not self.reading.busy

    def _on_read(self, answered: Answered) -> None:
        self._answered, self._cell = answered, None
        known = answered.classes() if len(answered) else []
        classes: dict[int | None, str] = {None: "All", **{c: answered.class_name(c) for c in known}}
        self._bar.offer("label", classes if known else {})
        self._choices["shown"].setEnabled(len(answered) > 0)
        of = self.state.folder, self._bar.boxes["model"].currentData()
        if len(answered) and of != self._of:
            self._of = of
            self._choices["shown"].choose(self._worth_seeing())
        self._show()

    def _worth_seeing(self) -> str:
        """What a run opens on (a key of SHOWN): where backends differ, else what is wrong, else all."""
        for shown in ("disagree", "wrong"):
            everything = Filter(shown, None, None, "index")
            able = self._answered.labelled or shown == "disagree"
            if able and len(self._answered.chosen(everything, self._focus())):
                return shown
        return "all"

    def _show(self) -> None:
        answered, focus = self._answered, self._focus()
        wanted = Filter(
            str(self._choices["shown"].currentData()),
            self._choices["label"].currentData(),
            self._cell,
            str(self._choices["order"].currentData()),
        )
        indices = answered.chosen(wanted, focus)
        self.grid.nothing = self._why_none(wanted.shown) if not len(indices) else ""
        self.grid.show_images(answered, indices)
        if self._image in indices:
            row = int((indices == self._image).argmax())
            self.grid.setCurrentIndex(self.grid.source.index(row))
        which = [SHOWN[wanted.shown].lower()] if wanted.shown != "all" else []
        if wanted.label is not None:
            which.append(f"class {answered.class_name(wanted.label)}")
        only = f": {', '.join(which)}" if which else ""
        parts = [f"{len(indices):,} of {len(answered):,} images{only}"]
        if self._cell is not None:
            label, predicted = map(answered.class_name, self._cell)
            parts.append(f"{label} that {answered.names[focus]} took for {predicted}")
        if len(answered.names) > 1:
            parts.append(f"same answer from all backends: {agreeing(answered):,}")
        if answered.images is not None and len(answered.images) < len(answered):
            parts.append(f"the first {len(answered.images):,} are kept as pictures")
        self.count.setText("; ".join([*parts, *answered.problems]))
        self.reset.setEnabled(wanted.shown != "all" or wanted.label is not None or self._cell is not None)
        self._show_confusion(focus)
        self._show_image()

    def _show_confusion(self, focus: int) -> None:
        answered = self._answered
        if self._confused != (answered, focus):
            self._confused = (answered, focus)
            self.confusion.show_answers(answered, focus)
        labelled = answered.labelled
        self.confusion.setVisible(labelled)
        self._hint.setVisible(labelled)
        who = answered.names[focus] if answered.names else ""
        words = f"Confusion matrix of {who}" if labelled else f"{self._unlabelled()}: no confusion matrix."
        self._heading.setText(words)
        self._heading.setToolTip(as_tip(self._refused))

    def _why_none(self, filter_key: str) -> str:
        if not len(self._answered):
            return " ".join(self._answered.problems) or "Reading the images …"
        if not self._answered.labelled and filter_key.startswith("wrong"):
            return f"{self._unlabelled()}, so none of them is right or wrong. {self._refused}".strip()
        reasons = {
            "wrong": "No image is answered wrong by any backend.",
            "wrong here": f"{self._answered.names[self._focus()]} answers no image wrong.",
            "disagree": "All backends give the same answer to every image.",
        }
        narrowed = self._choices["label"].currentData() is not None or self._cell is not None
        return "No image passes these filters." if narrowed else reasons.get(filter_key, "")

    def _unlabelled(self) -> str:
        return "It is not known which answers are right" if self._refused else "These images have no labels"

    def _show_image(self) -> None:
        self.detail.show_image(self._answered, self._image, self.theming.theme)

    # ------------------------------------------------------------------------------------------- choosing

    def _focus(self) -> int:
        name = self._choices["focus"].currentData()
        return self._answered.names.index(name) if name in self._answered.names else 0

    def _on_chosen(self, key: str) -> None:
        if key in ("shown", "label", "order"):
            self._cell = None if key != "order" else self._cell
            self._show()
            return
        self.invalidate()
        if key == "focus":
            self._cell = None
            self.state.select(self._cases.get(self._choices["focus"].currentData()))

    def _on_cell(self, label: int, predicted: int) -> None:
        self._show_all((label, predicted))

    def _show_all(self, cell: tuple[int, int] | None = None) -> None:
        """Remove all filters. cell: a cell of the confusion matrix to show, None for all."""
        self._cell = cell
        for key in ("shown", "label"):
            self._choices[key].setCurrentIndex(0)
        self._show()

    def _on_image(self, index: int) -> None:
        self._image = index
        self._show_image()


def _answered(measurement: Measurement) -> bool:
    return measurement.accuracy is not None and measurement.accuracy.images > 0


def name_of(case: Case) -> str:
    return label(case.backend, case.precision)


def contenders(measurements: Iterable[Measurement], batch: int) -> dict[str, Measurement]:
    """Measurements by contender, references last. A contender without answers at this batch size is shown
    with those of the nearest size, and its name says so: the batch size should change no answer."""
    nearest: dict[str, Measurement] = {}
    for m in measurements:
        other = nearest.get(name_of(m.case))
        if other is None or _away(m.case.batch, batch) < _away(other.case.batch, batch):
            nearest[name_of(m.case)] = m
    ordered = sorted(nearest.items(), key=lambda item: item[1].reference in ("", item[1].case.backend))
    return {name if m.case.batch == batch else f"{name} (batch {m.case.batch:,})": m for name, m in ordered}


def _away(batch: int, wanted: int) -> float:
    return max(batch / wanted, wanted / batch)


PAGE = PredictionsPage
