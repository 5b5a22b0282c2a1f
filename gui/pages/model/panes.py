"""The panes beside the graph on the Model page: weights with a histogram, and images going in."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QHelpEvent, QImage, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QSizePolicy,
    QSplitter,
    QToolTip,
    QVBoxLayout,
    QWidget,
)

from bench.questions.preview import Picture, Preview, PreviewNode, SeenImage, Weight
from bench.views.tables.table import Column
from gui.base.boxes import ScrollArea, filled
from gui.base.theme import Theming
from gui.pages.model import words
from gui.pages.model.facts import FactsView
from gui.widgets.labels import Label
from gui.widgets.table_view import TableView

EDGE = 10


class Histogram(QWidget):
    """Empty until it is shown counts."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        theming.changed.connect(self.update)
        self._counts: tuple[int, ...] = ()
        self._low = self._high = 0.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Histogram")

    def sizeHint(self) -> QSize:
        return QSize(320, 150)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 90)

    def show_counts(self, counts: Sequence[int], low: float, high: float) -> None:
        self._counts, self._low, self._high = tuple(counts), low, high
        most = max(self._counts, default=0)
        self.setAccessibleDescription(
            f"{sum(self._counts):,} values from {low:.4g} to {high:.4g}, at most {most:,} a bin"
        )
        self.update()

    def words_at(self, x: float) -> str:
        """What stands in the bin at this place of the widget."""
        counts, room = self._counts, self._room()
        if not counts or not room.left() <= x <= room.right():
            return ""
        place = min(len(counts) - 1, int((x - room.left()) / room.width() * len(counts)))
        each = self._high / len(counts) - self._low / len(counts)
        if len(counts) == 1:
            return f"{self._low:.4g}: {counts[0]:,} of {counts[0]:,} values"
        span = f"{self._low + place * each:.4g} to {self._low + (place + 1) * each:.4g}"
        return f"{span}: {counts[place]:,} of {sum(counts):,} values"

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self.words_at(event.pos().x()), self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self._theming.theme.paper))
        if not self._counts:
            return
        room, most, theme = self._room(), max(self._counts), self._theming.theme
        wide = room.width() / len(self._counts)
        painter.setPen(QPen(QColor(theme.line)))
        painter.drawLine(room.bottomLeft(), room.bottomRight())
        bar = QColor(theme.accent)
        for place, count in enumerate(self._counts):
            height = room.height() * count / most if most else 0.0
            if count:
                height = max(1.0, height)  # one value among a million is there, too
            left = room.left() + place * wide
            gap = 1.0 if wide > 3 else 0.0
            painter.fillRect(QRectF(left, room.bottom() - height, wide - gap, height), bar)
        painter.setPen(QColor(theme.muted))
        foot = QRectF(room.left(), room.bottom() + 2, room.width(), self.fontMetrics().height())
        one = len(self._counts) == 1
        marks = [(self._low, Qt.AlignmentFlag.AlignHCenter if one else Qt.AlignmentFlag.AlignLeft)]
        if not one:
            marks.append((self._high, Qt.AlignmentFlag.AlignRight))
            if self._low < 0 < self._high:
                at = room.left() - self._low / (self._high - self._low) * room.width()
                painter.drawLine(int(at), int(room.bottom()), int(at), int(room.bottom()) + 4)
                if room.left() + 70 < at < room.right() - 70:
                    zero = QRectF(at - 30, foot.top(), 60, foot.height())
                    painter.drawText(zero, int(Qt.AlignmentFlag.AlignHCenter), "0")
        for value, side in marks:
            painter.drawText(foot, int(side), f"{value:.4g}")

    def _room(self) -> QRectF:
        foot = self.fontMetrics().height() + 4
        return QRectF(self.rect()).adjusted(EDGE, 6, -EDGE, -foot)


SIDE = 128  # pixels of an image as drawn


class NodesTable(TableView):
    """`picked` carries the node's name."""

    widest = 420

    def target(self, row: PreviewNode) -> str:
        return row.name

    def tip(self, row: PreviewNode, column: Column[PreviewNode]) -> str:
        return words.tip(row)

    def ink(self, row: PreviewNode, column: Column[PreviewNode]) -> QColor | None:
        device = column.name.removesuffix(" kernel")
        run = row.runs.get(device)
        return QColor(self.theme.failed) if run is not None and run.refused else None


class WeightsTable(TableView):
    """`picked` carries the weight's name."""

    def target(self, row: Weight) -> str:
        return row.name


class WeightCard(QFrame):
    """One weight: its name, its histogram, and figures below it."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "card")
        self.histogram = Histogram(theming)
        self.title = Label(role="heading", wrap=True)
        self.spread = Label(role="muted", wrap=True)
        filled(
            QVBoxLayout(self),
            self.title,
            (self.histogram, 1),
            self.spread,
            margins=(8, 6, 8, 6),
            spacing=3,
        )

    def show_weight(self, weight: Weight | None, otherwise: str = "") -> None:
        if weight is None:
            self.title.setText(otherwise)
            self.spread.setText("")
            self.histogram.show_counts((), 0, 0)
            return
        self.title.setText(f"{weight.name}  {words.shape_text(weight.shape)}")
        self.spread.setText(words.spread_words(weight))
        self.histogram.show_counts(weight.counts, weight.low, weight.high)


class WeightsPane(QSplitter):
    """The table above, the weight chosen in it below."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Vertical, parent)
        self.setObjectName("model-weights")
        self.table = WeightsTable("Weights")
        self.table.picked.connect(self.show_weight)
        self.card = WeightCard(theming)
        self.addWidget(self.table)
        self.addWidget(self.card)
        self.setStretchFactor(0, 1)
        self.setSizes([320, 200])
        self._weights: dict[str, Weight] = {}

    def show_preview(self, preview: Preview) -> None:
        self._weights = {weight.name: weight for weight in preview.weights}
        self.table.show_table(words.weights_table(preview))
        largest = max(preview.weights, key=lambda weight: weight.elements, default=None)
        self.show_weight(largest.name if largest is not None else "")

    def show_weight(self, name: str) -> None:
        self.card.show_weight(self._weights.get(name), "" if self._weights else "The model has no weights.")
        if name in self._weights:
            self.table.follow(name)


class NodePane(QSplitter):
    """What is known of a node, and its largest weight."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Vertical, parent)
        self.setObjectName("model-node")
        self.facts = FactsView("The node chosen")
        self.card = WeightCard(theming)
        self.addWidget(self.facts)
        self.addWidget(self.card)
        self.setStretchFactor(0, 1)
        self.setSizes([340, 180])

    @property
    def text(self) -> str:
        return self.facts.text

    def show_node(self, preview: Preview, key: str) -> None:
        none = [("Node", [("", "Click a box of the graph, or find one (Ctrl+F).")])]
        self.facts.show_facts(words.of_node(preview, key) or none)
        node = next((node for node in preview.nodes if node.name == key), None)
        own = [weight for weight in preview.weights if node is not None and weight.name in node.weights]
        largest = max(own, key=lambda weight: weight.elements, default=None)
        self.card.setVisible(largest is not None)
        self.card.show_weight(largest)


class ImagesPane(ScrollArea):
    """Each image as the data set has it, and as the model is given it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Images going in", parent=parent)
        self.shown = 0

    def show_preview(self, preview: Preview) -> None:
        body = QWidget()
        note = Label(preview.images_note or preview.takes.refused or "There is no image to show.", wrap=True)
        grid = QGridLayout()
        grid.setHorizontalSpacing(14)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(3, 1)
        for index, image in enumerate(preview.images):
            self._put(grid, 2 * index, image)
        filled(QVBoxLayout(body), note, grid, 1, margins=(8, 8, 8, 8), spacing=10)
        self.shown = len(preview.images)
        self.setWidget(body)

    def _put(self, grid: QGridLayout, row: int, image: SeenImage) -> None:
        arrow = Label("→", role="heading")
        grid.addWidget(arrow, row, 1, Qt.AlignmentFlag.AlignCenter)
        own = f"{image.label}, " if image.label else ""
        for column, picture, caption in (
            (0, image.own, f"{own}{image.own.height}×{image.own.width}"),
            (2, image.given, given_words(image)),
        ):
            shown = Label()
            shown.setPixmap(pixmap(picture))
            shown.setAccessibleName(caption)
            under = Label(caption, role="muted", wrap=True)
            grid.addWidget(shown, row, column)
            grid.addWidget(under, row + 1, column, Qt.AlignmentFlag.AlignTop)


def given_words(image: SeenImage) -> str:
    """The shape of what the model is given, and each channel's values."""
    several = len(image.channels) > 1
    lines = [
        f"{f'channel {place}: ' if several else ''}{low:.3g} to {high:.3g}, mean {mean:.3g}"
        for place, (low, mean, high) in enumerate(image.channels)
    ]
    return "\n".join([image.size, *lines])


def pixmap(picture: Picture) -> QPixmap:
    """As large as is drawn: small ones by whole pixels."""
    colour = picture.channels == 3
    form = QImage.Format.Format_RGB888 if colour else QImage.Format.Format_Grayscale8
    line = picture.width * picture.channels
    whole = len(picture.pixels) == line * picture.height
    if not whole or not picture.pixels:
        return QPixmap()
    image = QImage(picture.pixels, picture.width, picture.height, line, form).copy()
    longer = max(picture.width, picture.height)
    if longer <= SIDE:
        times = SIDE // longer
        return QPixmap.fromImage(image.scaled(picture.width * times, picture.height * times))
    return QPixmap.fromImage(
        image.scaled(
            SIDE, SIDE, Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.SmoothTransformation
        )
    )
