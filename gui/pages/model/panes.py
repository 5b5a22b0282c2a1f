"""The panes beside the graph on the Model page: weights with a histogram, and images going in."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage, QPixmap
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QScrollArea,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from bench.questions.preview import Picture, Preview, PreviewNode, SeenImage, Weight
from bench.show.table import Column
from gui.base.boxes import filled
from gui.base.theme import Theme
from gui.pages.model import words
from gui.pages.model.facts import FactsView
from gui.widgets.histogram import Histogram
from gui.widgets.labels import Label
from gui.widgets.table_view import TableView

SIDE = 128  # pixels of an image as drawn


class NodesTable(TableView):
    """`picked` carries the node's name."""

    widest = 420

    def __init__(self, theme: Theme) -> None:
        super().__init__("Nodes")
        self.theme = theme

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

    def __init__(self) -> None:
        super().__init__("Weights")

    def target(self, row: Weight) -> str:
        return row.name


class WeightCard(QFrame):
    """One weight: its name, its histogram, and figures below it."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "card")
        self.histogram = Histogram(theme)
        self.title = Label()
        self.title.setProperty("role", "heading")
        self.title.setWordWrap(True)
        self.spread = Label()
        self.spread.setProperty("role", "muted")
        self.spread.setWordWrap(True)
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

    def restyle(self, theme: Theme) -> None:
        self.histogram.theme = theme
        self.histogram.update()


class WeightsPane(QSplitter):
    """The table above, the weight chosen in it below."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Vertical, parent)
        self.setObjectName("model-weights")
        self.table = WeightsTable()
        self.table.picked.connect(self.show_weight)
        self.card = WeightCard(theme)
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

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Vertical, parent)
        self.setObjectName("model-node")
        self.facts = FactsView("The node chosen")
        self.card = WeightCard(theme)
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


class ImagesPane(QScrollArea):
    """Each image as the data set has it, and as the model is given it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName("Images going in")
        self.shown = 0

    def show_preview(self, preview: Preview) -> None:
        body = QWidget()
        note = Label(preview.images_note or preview.takes.refused or "There is no image to show.")
        note.setWordWrap(True)
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
        arrow = Label("→")
        arrow.setProperty("role", "heading")
        grid.addWidget(arrow, row, 1, Qt.AlignmentFlag.AlignCenter)
        own = f"{image.label}, " if image.label else ""
        for column, picture, caption in (
            (0, image.own, f"{own}{image.own.height}×{image.own.width}"),
            (2, image.given, given_words(image)),
        ):
            shown = Label()
            shown.setPixmap(pixmap(picture))
            shown.setAccessibleName(caption)
            under = Label(caption)
            under.setProperty("role", "muted")
            under.setWordWrap(True)
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
