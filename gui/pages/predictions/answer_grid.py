"""The images as a grid, each with its label and every answer to it (only what is seen is drawn); and one
image, large, with all that is known of it."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from bench.views.sentences.verdicts import CROWDED
from bench.words import palette, units
from gui.base.boxes import filled
from gui.base.theme import Theme, Theming
from gui.pages.predictions.answers import Answered
from gui.widgets.labels import Label, as_tip
from gui.widgets.table_view import NO_INDEX, Index

SIDE = 64  # of an image as drawn, in logical pixels
PAD = 6
NOTHING = Answered((), (), None)


def picture(answered: Answered, index: int) -> QImage | None:
    """An image as kept, or None where the run has none of this index."""
    images = answered.images
    if images is None or index >= len(images):
        return None
    pixels = np.ascontiguousarray(images.pixels[index])
    height, width = pixels.shape[:2]
    colour = pixels.ndim == 3
    form = QImage.Format.Format_RGB888 if colour else QImage.Format.Format_Grayscale8
    return QImage(pixels.tobytes(), width, height, width * (3 if colour else 1), form).copy()


class AnswerModel(QAbstractListModel):
    """The images that are chosen, by their index in the data set."""

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
            said = words(self.answered, int(self.indices[index.row()]))
            return as_tip(said) if role == Qt.ItemDataRole.ToolTipRole else said
        return None


def words(answered: Answered, index: int) -> str:
    """What is known of an image, a line each; also what a screen reader says."""
    label = int(answered.labels[index])
    lines = [f"image {index:,}" + (f", {answered.class_name(label)}" if label >= 0 else "")]
    for name, answers in zip(answered.names, answered.answers, strict=True):
        predicted = int(answers.predicted[index])
        mark = "" if label < 0 else " ✓" if predicted == label else " ✕"
        sure = units.percent(float(answers.confidence[index]), 1)
        lines.append(f"{name}: {answered.class_name(predicted)}, {sure}{mark}")
    return "\n".join(lines)


class AnswerDelegate(QStyledItemDelegate):
    def __init__(self, theming: Theming, parent: QWidget) -> None:
        super().__init__(parent)
        self._theming = theming
        self._size = QSize(SIDE + 2 * PAD, SIDE + 2 * PAD)

    def measure(self, answered: Answered, metrics: QFontMetrics) -> None:
        """Make cells fit the longest class name."""
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
    """`picked` carries the index of the image gone to. `nothing`: what to say where no image is chosen."""

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
        """Show these; where they are shown already the place in the list stays."""
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
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.picture = Label()
        self.picture.setFixedSize(LARGE, LARGE)
        self.picture.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.facts = Label(wrap=True, selectable=True)
        self.facts.setTextFormat(Qt.TextFormat.RichText)
        self.facts.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        filled(
            QHBoxLayout(self),
            (self.picture, 0, Qt.AlignmentFlag.AlignTop),
            (self.facts, 1),
            margins=(0, 0, 0, 0),
        )

    def show_image(self, answered: Answered, index: int, theme: Theme) -> None:
        """Show the image of this index in the data set; hide where there is none such."""
        known = 0 <= index < len(answered)
        self.setVisible(known)
        if not known:
            return
        image = picture(answered, index)
        self.picture.setVisible(image is not None)
        if image is not None:
            ratio = self.devicePixelRatioF()
            side = round(LARGE * ratio)
            shown = QPixmap.fromImage(image).scaled(side, side, Qt.AspectRatioMode.KeepAspectRatio)
            shown.setDevicePixelRatio(ratio)
            self.picture.setPixmap(shown)
        self.facts.setText(facts(answered, index, theme))


def facts(answered: Answered, index: int, theme: Theme) -> str:
    """What is known of an image, as HTML: two lines a contender, of many one, or they would leave the
    confusion matrix no room."""
    between = "<br>" if len(answered.names) <= CROWDED else "&nbsp; "
    label = int(answered.labels[index])
    told = escape(answered.class_name(label)) if label >= 0 else "unknown"
    lines = [f"<b>Image {index:,}</b>", f"label: <b>{told}</b>"]
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
