"""Model: what a model's file holds and what our engine would run for it, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QColor, QShowEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QSplitter,
    QStackedWidget,
    QTabWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from bench.questions.preview import Preview, PreviewNode, WhichPreview
from bench.results.records import Job, stem
from bench.words import palette
from gui.base.boxes import filled
from gui.base.theme import Theming
from gui.pages.model import words
from gui.pages.model.facts import FactsView
from gui.pages.model.panes import ImagesPane, NodePane, NodesTable, WeightsPane
from gui.pages.page import Page
from gui.sessions.run_state import RunState
from gui.widgets.choice_bar import ChoiceBar
from gui.widgets.find_bar import FindItems
from gui.widgets.graph.items import NodeLook
from gui.widgets.graph.tools import zoom_buttons
from gui.widgets.graph.view import GraphView
from gui.widgets.labels import Label

ORDER = 95
TINT = 0.34  # of an operator's colour in its box


class ModelPage(Page):
    """`asked` carries the WhichPreview whose answer is wanted; `show_preview` and `refuse` answer it.
    `ladder_wanted` carries the model, the PreviewNode whose ladder is wanted, and the batch size."""

    title = "Model"
    asked = Signal(object)
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
        """offered: the models there are, with their titles; job: as which one of them would be compared."""
        self._offered, self._job = offered, job

    # ------------------------------------------------------------------------------------------ building

    def build(self) -> QWidget:
        theme = self.theming.theme
        self.bar = ChoiceBar([("model", "&Model"), ("batch", "&Batch")])
        self.bar.chosen.connect(self._on_chosen)
        self.graph = GraphView(theme)
        self.graph.picked.connect(self.select_node)
        self.message = Label()
        self.message.setProperty("role", "empty")
        self.message.setWordWrap(True)
        self.message.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.about = FactsView("About the model")
        self.node = NodePane(theme)
        self.nodes = NodesTable(theme)
        self.nodes.picked.connect(self.select_node)
        self.weights = WeightsPane(theme)
        self.images = ImagesPane()
        self.panes = QTabWidget()
        self.panes.setDocumentMode(True)
        for pane, title in (
            (self.about, "Model"),
            (self.node, "Node"),
            (self.nodes, "Nodes"),
            (self.weights, "Weights"),
            (self.images, "Images"),
        ):
            self.panes.addTab(pane, title)
        self._behind_panes: set[QWidget] = set()
        self.panes.currentChanged.connect(lambda _: self._fill_pane())
        split = QSplitter(Qt.Orientation.Horizontal)
        split.setObjectName("model-columns")
        split.addWidget(self._graph_side())
        split.addWidget(self.panes)
        split.setStretchFactor(0, 1)
        split.setStretchFactor(1, 1)
        split.setSizes([460, 540])
        self._content = QStackedWidget()
        self._content.addWidget(self.message)
        self._content.addWidget(split)
        body = QWidget()
        filled(QVBoxLayout(body), self.bar, (self._content, 1), margins=(6, 6, 6, 6))
        return body

    def _graph_side(self) -> QWidget:
        side = QWidget()
        self.find_bar = FindItems(self.graph, self, "the model's nodes, tensors and attributes")
        self.find_bar.picked.connect(self.select_node)
        buttons = QHBoxLayout()
        for button in zoom_buttons(self.graph):
            buttons.addWidget(button)
        find = QToolButton()
        find.setText("Find")
        find.setToolTip("Find a node, a tensor or an attribute (Ctrl+F)")
        find.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        find.clicked.connect(self.find_bar.open_bar)
        self.ladder_action = QAction("Open in &ladder", self)
        self.ladder_action.setToolTip("Every kernel for the node chosen, checked and timed (Ctrl+Return)")
        self.ladder_action.setShortcut("Ctrl+Return")
        self.ladder_action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self.ladder_action.triggered.connect(self._on_ladder)
        self.addAction(self.ladder_action)
        ladder = QToolButton()
        ladder.setDefaultAction(self.ladder_action)
        ladder.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        filled(buttons, find, 1, ladder)
        filled(QVBoxLayout(side), (self.graph, 1), self.find_bar, buttons, margins=(0, 0, 0, 0))
        return side

    # ------------------------------------------------------------------------------------------- asking

    def look_at(self, model: str) -> None:
        """Show this model, as soon as it is read."""
        self._wanted, self._failed = model, ""
        self._ask()

    def reading(self, question: WhichPreview) -> None:
        """Somebody has asked this, and will show its answer here."""
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
        """It was about a file that is no model: show what there was before it."""
        if question == self._question:
            self._question, self._waiting = None, ""
            self._wanted = self.preview.model if self.preview is not None else ""
            self.invalidate()

    def question_of(self, model: str) -> WhichPreview:
        """At the batch size that is looked at, where the model is compared at it, else at its first."""
        job = self._job(model)
        batches = job.batches_of(model)
        batch = self._question.batch if self._question is not None else 0
        return WhichPreview(job=_shown_of(job), batch=batch if batch in batches else batches[0])

    def look_again(self) -> None:
        """The form has changed: where that changes what is shown, ask again, now or when it is seen."""
        if self.isVisible():
            self._ask()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._ask()

    def _ask(self) -> None:
        """For the model wanted, else the one compared first; nothing where that was the last question."""
        offered = self._offered()
        if self._wanted not in offered:
            if self._waiting:
                return  # a file that is being opened
            self._wanted = next(iter(offered), "")
        if not self._wanted:
            return
        question = self.question_of(self._wanted)
        before, found = self._question, self.preview
        if found is not None and found.takes.fixed_batch and before is not None:
            question = WhichPreview(job=question.job, batch=before.batch)  # it is looked at with its own
        if question != before:
            self.reading(question)
            self.asked.emit(question)

    def _on_chosen(self, key: str) -> None:
        model = str(self.bar.boxes["model"].currentData())
        self._wanted = model
        batch = self.bar.boxes["batch"].currentData()
        if key == "batch" and self._question is not None:
            question = WhichPreview(job=self._question.job, batch=int(batch))
            self.reading(question)
            self.asked.emit(question)
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
        boxes, edges = words.boxes(preview)
        self.graph.show_graph(boxes, edges)
        self.graph.show_looks({node.name: self._look(preview, node) for node in preview.nodes})
        self.find_bar.show_items(words.searched(preview))
        self._behind_panes = {self.about, self.nodes, self.weights, self.images}
        if preview.model != self._drawn_model:
            self._drawn_model, self._selected = preview.model, ""
            self.panes.setCurrentWidget(self.about)
        self._show_node()
        self._fill_pane()

    def _fill_pane(self) -> None:
        """The pane in front; the others when they come there: tables of a thousand nodes take a while."""
        pane, preview = self.panes.currentWidget(), self._drawn_preview
        if preview is None or pane not in self._behind_panes:
            return
        self._behind_panes.discard(pane)
        if pane is self.about:
            self.about.show_facts(words.of_model(preview))
        elif pane is self.nodes:
            self.nodes.show_table(words.nodes_table(preview))
            self.nodes.follow(self._selected)
        elif pane is self.weights:
            self.weights.show_preview(preview)
            self._show_weight()
        else:
            self.images.show_preview(preview)

    def _look(self, preview: Preview, node: PreviewNode) -> NodeLook:
        theme = self.theming.theme
        colour = palette.CATEGORIES[words.family(node)][1]
        plain = words.family(node) == "other"
        fill = "" if plain else _mixed(colour, theme.paper, TINT)
        return NodeLook(fill, "", words.tip(node), failed=words.refused(node))

    def restyle(self) -> None:
        theme = self.theming.theme
        self._drawn_preview = None
        self.nodes.theme = theme
        self.graph.restyle(theme)
        for card in (self.weights.card, self.node.card):
            card.restyle(theme)

    # ------------------------------------------------------------------------------------------ choosing

    def select_node(self, key: str) -> None:
        """Show a box of the graph everywhere."""
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
        """The first of the node chosen."""
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
    """What of a job a preview depends on."""
    return Job(
        models=job.models,
        backends=(),
        precisions=job.precisions[:1],
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
