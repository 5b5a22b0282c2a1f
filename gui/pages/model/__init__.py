"""Model: what a model's file holds and what our engine would run for it, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import Signal
from PySide6.QtGui import QColor, QShowEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QStackedWidget,
    QWidget,
)

from bench.questions.preview import Preview, PreviewNode, WhichPreview
from bench.results.records import Job, stem
from bench.words import palette
from gui.base.boxes import HORIZONTAL, as_column, filled, splitter, tabbed
from gui.base.theme import Theming
from gui.pages.model import words
from gui.pages.model.panes import FactsView, ImagesPane, NodePane, NodesTable, WeightsPane
from gui.pages.page import Page
from gui.sessions.comparison_session import RunState
from gui.widgets.controls import ChoiceBar, FindItems, Label, new_action, tool_button, tool_of
from gui.widgets.graph import GraphView, NodeLook

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
        return as_column(self.bar, (self._content, 1), margins=(6, 6, 6, 6))

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
        """Fill the pane in front. Others are filled when they come to the front: a table of 1,000 nodes
        takes time."""
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
        self._drawn_preview = None

    # ------------------------------------------------------------------------------------------ choosing

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
