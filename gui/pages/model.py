"""Model: what a model's file holds and what our engine would run for it, before anything runs.

The panes show boxes and arrows, facts of a node and of the model, tables, weights with a histogram, and the
images that go in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QHelpEvent, QImage, QPainter, QPaintEvent, QPen, QPixmap, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QSizePolicy,
    QSplitter,
    QStackedWidget,
    QToolTip,
    QVBoxLayout,
    QWidget,
)

from bench.questions.preview import (
    Picture,
    Preview,
    PreviewNode,
    Run,
    SeenImage,
    Tensor,
    Weight,
    WhichPreview,
)
from bench.results.records import Job, stem
from bench.views.charts import breakdown
from bench.views.tables.table import Column, Table
from bench.words import palette, units
from gui.base.boxes import HORIZONTAL, ScrollArea, as_column, filled, splitter, tabbed
from gui.base.theme import PAGE_MARGINS, Theming
from gui.pages.page import Find, Page
from gui.sessions.comparison_session import RunState
from gui.widgets.controls import SELECTABLE, ChoiceBar, FindItems, Label, new_action, tool_button, tool_of
from gui.widgets.graph import Box, GraphView, NodeLook
from gui.widgets.table_view import TableView

Section = tuple[str, Sequence[tuple[str, str]]]  # a title, and pairs of a name and its value
FAILED = "✕ "  # words that tell of a refusal begin with it
INPUT, OUTPUT = "input:", "output:"  # before the names of the model's ends, as keys of the graph


def our_backend(device: str) -> str:
    """The name of our backend on a device."""
    return f"engine-{device}"


def shape_text(shape: Sequence[int | str | None]) -> str:
    return " × ".join("?" if size is None else str(size) for size in shape) if shape else "one value"


def preview_boxes(preview: Preview) -> tuple[list[Box], list[tuple[str, str]]]:
    """The boxes (nodes, and the model's inputs and outputs) and the arrows between them. Every arrow leads
    from a box to a later one."""
    nodes = [Box(INPUT + t.name, f"{t.name}  {shape_text(t.shape)}", plain=True) for t in preview.inputs]
    source_of = {t.name: INPUT + t.name for t in preview.inputs}
    edges: list[tuple[str, str]] = []
    for node in preview.nodes:
        name = "" if node.name == node.op else node.name
        nodes.append(Box(node.name, node.op, name, shape_text(node.shape) if node.shape else ""))
        edges += [
            (source_of[tensor], node.name) for tensor in dict.fromkeys(node.inputs) if tensor in source_of
        ]
        source_of.update((tensor, node.name) for tensor in node.outputs)
    for tensor in preview.outputs:
        if tensor.name in source_of:
            key = OUTPUT + tensor.name
            nodes.append(Box(key, f"{tensor.name}  {shape_text(tensor.shape)}", plain=True))
            edges.append((source_of[tensor.name], key))
    return nodes, edges


def category(node: PreviewNode) -> str:
    """The category of a node: conv, pool, fc or other (a key of bench.words.palette.CATEGORIES)."""
    return breakdown.category_of(node.op)


def run_words(run: Run | None, node: str) -> str:
    """What our engine runs for a node, or why it runs nothing."""
    if run is None:
        return ""
    if run.refused:
        return FAILED + run.refused
    if run.note:
        return run.note
    others = [name for name in run.nodes if name != node]
    beside = f", in one step with {', '.join(others)}" if others else ""
    words = {"ladder": "by the ladder", "timed": "timed to be the fastest here", "layout": "for its layout"}
    how = words.get(run.chosen, run.chosen)
    return f"{run.kernel} ({how}){beside}"


def kernel_words(run: Run | None) -> str | None:
    """The same, short, for a table's cell."""
    if run is None:
        return None
    return FAILED + "no kernel" if run.refused else run.kernel or run.note.partition(":")[0]


def is_refused(node: PreviewNode) -> bool:
    return any(run.refused for run in node.runs.values())


def node_tip(node: PreviewNode) -> str:
    lines = [f"{node.op} {node.name}"]
    lines += [f"{our_backend(d)}: {run_words(run, node.name)}" for d, run in node.runs.items()]
    return "\n".join(lines)


def search_texts(preview: Preview) -> list[tuple[str, str]]:
    """For each box: its key, and the text in which the find bar searches."""
    texts = [(INPUT + t.name, t.name) for t in preview.inputs]
    for node in preview.nodes:
        parts = [node.name, node.op, node.domain, *node.inputs, *node.weights, *node.outputs]
        parts += [f"{name} {value}" for name, value in node.attributes]
        parts += [run.kernel for run in node.runs.values()]
        texts.append((node.name, "\n".join(parts)))
    return texts + [(OUTPUT + t.name, t.name) for t in preview.outputs]


# ---------------------------------------------------------------------------------------------- sections


def model_facts(preview: Preview) -> list[Section]:
    image_facts = [pair for pair in preview.takes.lines if pair[0] not in ("input", "output", "batch")]
    if preview.takes.refused:
        image_facts.append(("but", FAILED + preview.takes.refused))
    batch = preview.takes.fixed_batch
    return [
        ("File", preview.facts),
        ("Inputs and outputs", [
            *(("input", f"{t.name}: {_tensor(t)}") for t in preview.inputs),
            *(("output", f"{t.name}: {_tensor(t)}") for t in preview.outputs),
            ("batch size", f"{batch} alone: the file fixes it" if batch else "any"),
        ]),
        ("An image and its answer", image_facts),
        (f"What our engine runs at batch {preview.batch:,} in {preview.precision}", [
            (our_backend(d), (FAILED if words.startswith("does not") else "") + words)
            for d, words in preview.devices.items()
        ]),
        ("Not shown", [("too many", f"{preview.left_out:,} nodes and weights")] if preview.left_out else []),
    ]  # fmt: skip


def node_facts(preview: Preview, key: str) -> list[Section]:
    """The facts of a box of the graph; [] if there is no box with this key."""
    for kind, words, tensors in (
        (INPUT, "Input of the model", preview.inputs),
        (OUTPUT, "Output of the model", preview.outputs),
    ):
        for tensor in tensors:
            if key == kind + tensor.name:
                return [(words, [("name", tensor.name), ("holds", _tensor(tensor))])]
    node = next((node for node in preview.nodes if node.name == key), None)
    if node is None:
        return []
    weights = {weight.name: weight for weight in preview.weights}
    return [
        (node.op, [
            ("name", node.name),
            *([("domain", node.domain)] if node.domain else []),
            *([("output shape", shape_text(node.shape))] if node.shape else []),
        ]),
        ("What our engine runs", _runs(node)),
        ("Attributes", node.attributes),
        ("Inputs", [("tensor", name) for name in node.inputs]),
        ("Weights", [(name, weight_words(weights[name])) for name in node.weights if name in weights]),
        ("Outputs", [("tensor", name) for name in node.outputs]),
    ]  # fmt: skip


def _runs(node: PreviewNode) -> list[tuple[str, str]]:
    """What runs on each device. Devices with the same text share one line."""
    devices_of: dict[str, list[str]] = {}
    for device, run in node.runs.items():
        devices_of.setdefault(run_words(run, node.name), []).append(our_backend(device))
    return [("\n".join(devices), words) for words, devices in devices_of.items()]


def _tensor(tensor: Tensor) -> str:
    return f"{tensor.dtype}, {shape_text(tensor.shape)}"


def weight_words(weight: Weight) -> str:
    words = f"{weight.dtype}, {shape_text(weight.shape)}"
    if weight.counts:
        words += f"; {weight.low:.4g} to {weight.high:.4g}"
    return words


def spread_words(weight: Weight) -> str:
    """The figures of a weight, for below its histogram."""
    if not weight.counts:
        return "Its values are no numbers to count."
    parts = [f"mean {weight.mean:.4g}, standard deviation {weight.std:.4g}"]
    if weight.zeros:
        parts.append(f"{units.percent(weight.zeros, 1)} are 0")
    if weight.not_finite:
        parts.append(f"{weight.not_finite:,} are NaN or infinite")
    if weight.taken < weight.elements:
        parts.append(f"of {weight.taken:,} values, evenly spread over {weight.elements:,}")
    return "; ".join(parts)


# ------------------------------------------------------------------------------------------------ tables


def nodes_table(preview: Preview) -> Table[PreviewNode]:
    sizes = {weight.name: weight.elements for weight in preview.weights}
    place = {node.name: index for index, node in enumerate(preview.nodes, start=1)}

    def runs(device: str) -> Column[PreviewNode]:
        return Column(
            f"{device} kernel",
            lambda node: kernel_words(node.runs.get(device)),
            title=our_backend(device),
            tip=f"what {our_backend(device)} runs for the node, or why it runs nothing",
            left=True,
        )

    columns: tuple[Column[PreviewNode], ...] = (
        Column("place", lambda node: place[node.name], title="#"),
        Column("node", lambda node: node.name, left=True),
        Column("op", left=True),
        Column("shape", lambda n: shape_text(n.shape) if n.shape else None, title="output shape", left=True),
        *map(runs, preview.devices),
        Column("parameters", lambda n: sum(sizes.get(name, 0) for name in n.weights) or None),
    )
    return Table(columns, preview.nodes)


def weights_table(preview: Preview) -> Table[Weight]:
    columns: tuple[Column[Weight], ...] = (
        Column("weight", lambda weight: weight.name, left=True),
        Column("shape", lambda weight: shape_text(weight.shape), left=True),
        Column("dtype", title="type", left=True),
        Column("elements"),
        Column("nbytes", text=units.nbytes, title="bytes"),
        Column("low", lambda w: w.low if w.counts else None, _figure, title="lowest"),
        Column("high", lambda w: w.high if w.counts else None, _figure, title="highest"),
        Column("mean", lambda w: w.mean if w.counts else None, _figure),
        Column("std", lambda w: w.std if w.counts else None, _figure, title="deviation"),
        Column("zeros", lambda w: w.zeros or None, lambda value: units.percent(value, 1), title="zeros"),
        Column("not_finite", lambda w: w.not_finite or None, title="not finite", tip="NaN or infinite"),
    )
    return Table(columns, preview.weights)


def _figure(value: float) -> str:
    return f"{value:.3g}"


LONG = 24  # characters of a name that may take two lines


class FactsView(ScrollArea):
    """Headings with pairs of a name and a value, which can be copied. `show_facts` fills it."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, False, parent)
        self.text = ""
        self._shown: tuple[Section, ...] | None = None
        self.show_facts(())

    def show_facts(self, sections: Sequence[Section]) -> None:
        """Show these sections. A section without pairs is left out."""
        sections = tuple((title, tuple(pairs)) for title, pairs in sections if pairs)
        if sections == self._shown:
            return
        self._shown = sections
        body = QWidget()
        grid = QGridLayout(body)
        grid.setContentsMargins(8, 6, 8, 6)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(3)
        grid.setColumnStretch(1, 1)
        row, lines = 0, []
        for title, pairs in sections:
            if row:
                grid.setRowMinimumHeight(row, 8)
                row += 1
            grid.addWidget(Label(title, role="heading"), row, 0, 1, 2)
            lines.append(title)
            row += 1
            for name, value in pairs:
                long = len(name) > LONG
                left = Label(name, role="muted", wrap=long)
                if long:
                    left.setMaximumWidth(190)
                right = Label(value, role="failed" if value.startswith(FAILED) else "", wrap=True)
                right.setTextInteractionFlags(SELECTABLE)
                for place, label in enumerate((left, right)):
                    grid.addWidget(label, row, place, Qt.AlignmentFlag.AlignTop)
                lines.append(f"{name}: {value}")
                row += 1
        grid.setRowStretch(row, 1)
        self.text = "\n".join(lines)
        self.setWidget(body)


EDGE = 10


class Histogram(QWidget):
    """A histogram of a weight's values. Empty until `show_counts` is called."""

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
        """What the bin at this x (in pixels of the widget) holds."""
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
                height = max(1.0, height)  # one value among a million must be visible
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
    """The nodes of a model. `picked` carries the node's name."""

    widest = 420

    def target(self, row: PreviewNode) -> str:
        return row.name

    def tip(self, row: PreviewNode, column: Column[PreviewNode]) -> str:
        return node_tip(row)

    def ink(self, row: PreviewNode, column: Column[PreviewNode]) -> QColor | None:
        device = column.name.removesuffix(" kernel")
        run = row.runs.get(device)
        return QColor(self.theme.failed) if run is not None and run.refused else None


class WeightsTable(TableView):
    """The weights of a model. `picked` carries the weight's name."""

    def target(self, row: Weight) -> str:
        return row.name


class WeightCard(QFrame):
    """One weight: its name, its histogram, and its figures."""

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
        self.title.setText(f"{weight.name}  {shape_text(weight.shape)}")
        self.spread.setText(spread_words(weight))
        self.histogram.show_counts(weight.counts, weight.low, weight.high)


class WeightsPane(QSplitter):
    """The table of weights, and below it the chosen one."""

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
        self.table.show_table(weights_table(preview))
        largest = max(preview.weights, key=lambda weight: weight.elements, default=None)
        self.show_weight(largest.name if largest is not None else "")

    def show_weight(self, name: str) -> None:
        self.card.show_weight(self._weights.get(name), "" if self._weights else "The model has no weights.")
        if name in self._weights:
            self.table.follow(name)


class NodePane(QSplitter):
    """The facts of a node, and its largest weight."""

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
        self.facts.show_facts(node_facts(preview, key) or none)
        node = next((node for node in preview.nodes if node.name == key), None)
        own = [weight for weight in preview.weights if node is not None and weight.name in node.weights]
        largest = max(own, key=lambda weight: weight.elements, default=None)
        self.card.setVisible(largest is not None)
        self.card.show_weight(largest)


class ImagesPane(ScrollArea):
    """Each image, as the data set has it and as the model gets it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Images going in", parent=parent)
        self.count = 0

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
        self.count = len(preview.images)
        self.setWidget(body)

    def _put(self, grid: QGridLayout, row: int, image: SeenImage) -> None:
        arrow = Label("→", role="heading")
        grid.addWidget(arrow, row, 1, Qt.AlignmentFlag.AlignCenter)
        own = f"{image.label}, " if image.label else ""
        for column, picture, caption in (
            (0, image.own, f"{own}{image.own.height}×{image.own.width}"),
            (2, image.given, given_words(image)),
        ):
            label = Label()
            label.setPixmap(pixmap(picture))
            label.setAccessibleName(caption)
            under = Label(caption, role="muted", wrap=True)
            grid.addWidget(label, row, column)
            grid.addWidget(under, row + 1, column, Qt.AlignmentFlag.AlignTop)


def given_words(image: SeenImage) -> str:
    """The shape of what the model gets, and the range of each channel."""
    several = len(image.channels) > 1
    lines = [
        f"{f'channel {place}: ' if several else ''}{low:.3g} to {high:.3g}, mean {mean:.3g}"
        for place, (low, mean, high) in enumerate(image.channels)
    ]
    return "\n".join([image.size, *lines])


def pixmap(picture: Picture) -> QPixmap:
    """A picture of at most SIDE pixels. Small ones are enlarged by a whole factor."""
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


ORDER = 95
TINT = 0.34  # of an operator's colour in its box


class ModelPage(Page):
    """The page of a model. `preview_wanted` carries a WhichPreview; `show_preview` or `refuse` answers it.
    `ladder_wanted` carries the model, the PreviewNode and the batch size of a ladder."""

    title = "Model"
    preview_wanted = Signal(object)
    ladder_wanted = Signal(str, object, int)

    def __init__(self, state: RunState, theming: Theming, parent: QWidget | None = None) -> None:
        self.preview: Preview | None = None
        self._question: WhichPreview | None = None  # the last one
        self._waiting = ""  # the model that is being read
        self._failed = ""  # why there is no preview
        self._wanted = ""  # the model to look at
        self._drawn_preview: Preview | None = None
        self._drawn_model = ""
        self._selected = ""  # a box of the graph
        super().__init__(state, theming, parent)

    def empty_text(self) -> str:
        return "Open a model (Ctrl+O), or drop an .onnx file on the window: its graph and weights appear here"

    def has_content(self) -> bool:
        return True

    @property
    def at_rest(self) -> bool:
        return self.preview is not None and not self._waiting and self._drawn_preview is self.preview

    def connect_to(self, offered: Callable[[], Mapping[str, str]], job: Callable[[str], Job]) -> None:
        """offered: returns the models to choose from, with their titles; job: the job that compares one of
        them."""
        self._offered, self._job = offered, job

    # ------------------------------------------------------------------------------------------ building

    def build(self) -> QWidget:
        self.bar = ChoiceBar([("model", "&Model"), ("batch", "&Batch")])
        self.bar.chosen.connect(self._on_chosen)
        self.graph = GraphView(self.theming)
        self.graph.picked.connect(self.select_node)
        self.message = Label(role="empty", wrap=True, centred=True)
        self.about = FactsView("About the model")
        self.node = NodePane(self.theming)
        self.nodes = NodesTable("Nodes", self.theming)
        self.nodes.picked.connect(self.select_node)
        self.weights = WeightsPane(self.theming)
        self.images = ImagesPane()
        panes = (self.about, self.node, self.nodes, self.weights, self.images)
        titles = ("Model", "Node", "Nodes", "Weights", "Images")
        self.panes = tabbed(dict(zip(titles, panes, strict=True)))
        self._behind_panes: set[QWidget] = set()
        self.panes.currentChanged.connect(lambda _: self._fill_pane())
        left = self._graph_side()
        split = splitter("model-columns", HORIZONTAL, left, self.panes, sizes=[460, 540], stretch=(1, 1))
        self._content = QStackedWidget()
        self._content.addWidget(self.message)
        self._content.addWidget(split)
        # It takes what room there is; with a height of its own the page would scroll.
        self._content.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Ignored)
        return as_column(self.bar, (self._content, 1), margins=PAGE_MARGINS)

    def _graph_side(self) -> QWidget:
        self.find_bar = FindItems(self.graph, self, "the model's nodes, tensors and attributes")
        self.find_bar.picked.connect(self.select_node)
        find = tool_button(
            "Find", self.find_bar.open_bar, tip="Find a node, a tensor or an attribute (Ctrl+F)"
        )
        self.ladder_action = new_action(
            self,
            "Open in &ladder",
            self._on_ladder,
            tip="Every kernel for the node chosen, checked and timed (Ctrl+Return)",
            keys="Ctrl+Return",
        )
        self.addAction(self.ladder_action)
        zoom = self.graph.zoom_buttons()
        buttons = filled(QHBoxLayout(), *zoom, find, 1, tool_of(self.ladder_action))
        return as_column((self.graph, 1), self.find_bar, buttons)

    # ------------------------------------------------------------------------------------------- asking

    def look_at(self, model: str) -> None:
        """Show this model as soon as it is read."""
        self._wanted, self._failed = model, ""
        self._ask()

    def reading(self, question: WhichPreview) -> None:
        """Say that somebody else has asked this question, and will show the answer here."""
        self._question = question
        self._wanted = self._waiting = question.job.models[0]
        self._failed = ""
        self.invalidate()

    def show_preview(self, question: WhichPreview, preview: Preview) -> None:
        if question == self._question:
            self.preview, self._waiting, self._failed = preview, "", ""
            self.invalidate()

    def refuse(self, question: WhichPreview, text: str) -> None:
        if question == self._question:
            self._waiting, self._failed, self.preview = "", text, None
            self.invalidate()

    def forget(self, question: WhichPreview) -> None:
        """The file of this question is no model: show again what was shown before it."""
        if question == self._question:
            self._question, self._waiting = None, ""
            self._wanted = self.preview.model if self.preview is not None else ""
            self.invalidate()

    def question_of(self, model: str) -> WhichPreview:
        """The question about a model: at the batch size shown now if the model is compared at it, else at
        its first."""
        job = self._job(model)
        batches = job.batches_of(model)
        batch = self._question.batch if self._question is not None else 0
        return WhichPreview(job=_shown_of(job), batch=batch if batch in batches else batches[0])

    def look_again(self) -> None:
        """The form has changed. If that changes the question, ask it now, or when the page is seen."""
        if self.isVisible():
            self._ask()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._ask()

    def _ask(self) -> None:
        """Ask for the wanted model, else for the first one. The same question is not asked twice."""
        offered = self._offered()
        if self._wanted not in offered:
            if self._waiting:
                return  # a file that is being opened
            self._wanted = next(iter(offered), "")
        if not self._wanted:
            return
        question = self.question_of(self._wanted)
        before, preview = self._question, self.preview
        if preview is not None and preview.takes.fixed_batch and before is not None:
            question = WhichPreview(job=question.job, batch=before.batch)  # it is looked at with its own
        if question != before:
            self.reading(question)
            self.preview_wanted.emit(question)

    def _on_chosen(self, key: str) -> None:
        model = str(self.bar.boxes["model"].currentData())
        self._wanted = model
        batch = self.bar.boxes["batch"].currentData()
        if key == "batch" and self._question is not None:
            question = WhichPreview(job=self._question.job, batch=int(batch))
            self.reading(question)
            self.preview_wanted.emit(question)
        else:
            self._ask()

    # ------------------------------------------------------------------------------------------- showing

    def refresh(self) -> None:
        offered = dict(self._offered())
        if self._wanted and self._wanted not in offered:
            offered[self._wanted] = stem(self._wanted)
        self.bar.wanted["model"] = self._wanted
        self.bar.offer("model", offered)
        if self._question is not None:
            job = self._job(self._wanted)
            sizes = dict.fromkeys([*job.batches_of(self._wanted), self._question.batch])
            fixed = self.preview.takes.fixed_batch if self.preview is not None else None
            sizes = {fixed: None} if fixed else sizes
            self.bar.wanted["batch"] = fixed or self._question.batch
            self.bar.offer("batch", {size: f"{size:,}" for size in sorted(sizes)})
        if self._waiting or self.preview is None:
            name = stem(self._waiting or self._wanted)
            self.message.setText(
                self._failed if self._failed else f"Reading {name} …" if self._waiting else self.empty_text()
            )
            self._content.setCurrentIndex(0)
            return
        self._content.setCurrentIndex(1)
        if self.preview is not self._drawn_preview:
            self._draw(self.preview)

    def _draw(self, preview: Preview) -> None:
        self._drawn_preview = preview
        boxes, edges = preview_boxes(preview)
        self.graph.show_graph(boxes, edges)
        self.graph.show_looks({node.name: self._look(preview, node) for node in preview.nodes})
        self.find_bar.show_items(search_texts(preview))
        self._behind_panes = {self.about, self.nodes, self.weights, self.images}
        if preview.model != self._drawn_model:
            self._drawn_model, self._selected = preview.model, ""
            self.panes.setCurrentWidget(self.about)
        self._show_node()
        self._fill_pane()

    def _fill_pane(self) -> None:
        """Fill the pane in front. Others are filled when they come to the front: a table of 1,000 nodes
        takes time."""
        pane, preview = self.panes.currentWidget(), self._drawn_preview
        if preview is None or pane not in self._behind_panes:
            return
        self._behind_panes.discard(pane)
        if pane is self.about:
            self.about.show_facts(model_facts(preview))
        elif pane is self.nodes:
            self.nodes.show_table(nodes_table(preview))
            self.nodes.follow(self._selected)
        elif pane is self.weights:
            self.weights.show_preview(preview)
            self._show_weight()
        else:
            self.images.show_preview(preview)

    def _look(self, preview: Preview, node: PreviewNode) -> NodeLook:
        theme = self.theming.theme
        colour = palette.CATEGORIES[category(node)][1]
        plain = category(node) == "other"
        fill = "" if plain else _mixed(colour, theme.paper, TINT)
        return NodeLook(fill, "", node_tip(node), failed=is_refused(node))

    def restyle(self) -> None:
        self._drawn_preview = None

    # ------------------------------------------------------------------------------------------ choosing

    def findable(self) -> Sequence[Find]:
        preview = self.preview
        if preview is None:
            return ()
        return [
            Find("Node", f"{node.name} of {preview.model}", partial(self.select_node, node.name), here=True)
            for node in preview.nodes
        ]

    def select_node(self, key: str) -> None:
        """Select a box of the graph in all panes."""
        self._selected = key
        self._show_node()
        if self.panes.currentWidget() in (self.about, self.images):
            self.panes.setCurrentWidget(self.node)
        self._show_weight()

    def _chosen_node(self) -> PreviewNode | None:
        nodes = self.preview.nodes if self.preview is not None else ()
        return next((node for node in nodes if node.name == self._selected), None)

    def _on_ladder(self) -> None:
        node = self._chosen_node()
        if self.preview is not None and node is not None:
            self.ladder_wanted.emit(self.preview.model, node, self.preview.batch)

    def _show_weight(self) -> None:
        """Show the first weight of the selected node."""
        node = self._chosen_node()
        if node is not None and node.weights:
            self.weights.show_weight(node.weights[0])

    def _show_node(self) -> None:
        assert self.preview is not None
        self.graph.select(self._selected)
        self.find_bar.go_from(self._selected)
        self.nodes.follow(self._selected)
        node = self._chosen_node()
        self.ladder_action.setEnabled(node is not None and any(run.kernel for run in node.runs.values()))
        self.node.show_node(self.preview, self._selected)

    def showcase(self) -> None:
        if self.preview is not None and not self._waiting:
            most = max(self.preview.nodes, key=lambda node: len(node.weights), default=None)
            if most is not None:
                self.select_node(most.name)


def _shown_of(job: Job) -> Job:
    """The part of a job on which a preview depends."""
    return Job(
        models=job.models,
        backends=(),
        precisions=job.precisions[:1],
        max_error=job.max_error,
        dataset=job.dataset,
        preprocess=job.preprocess,
        labels=job.labels,
        scores=job.scores,
        inputs=job.inputs,
        dims=job.dims,
    )


def _mixed(colour: str, paper: str, part: float) -> str:
    one, other = QColor(colour), QColor(paper)
    channels = ((one.red(), other.red()), (one.green(), other.green()), (one.blue(), other.blue()))
    return QColor(*(int(part * a + (1 - part) * b) for a, b in channels)).name()


PAGE = ModelPage
