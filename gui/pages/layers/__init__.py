"""Layers: the model as a graph, each layer coloured by its time or error, and the table of figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMenu,
    QSplitter,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from bench.results.records import ErrorStats, Layer, Measurement, stem
from bench.results.rows import title
from bench.words import units
from gui.base.boxes import filled
from gui.base.scale import PAGE_MARGINS
from gui.pages.layers import layer_rows
from gui.pages.layers.layer_bars import LayerBars, sides
from gui.pages.layers.layer_rows import LayerRow, contender, error_text
from gui.pages.layers.layer_table import LayerTable
from gui.pages.page import Page, Spot
from gui.widgets.choice_bar import ChoiceBar
from gui.widgets.colour_scale import Scale, ScaleLegend
from gui.widgets.graph.items import Box, NodeLook
from gui.widgets.graph.tools import zoom_buttons
from gui.widgets.graph.view import GraphView
from gui.widgets.labels import Label

ORDER = 20
COLOURS = {
    "time": "Time",
    "isolated": "Error, fed exact inputs",
    "propagated": "Error, carried along",
}
FLOOR = 1e-9  # the scale of errors reaches no lower than this


class LayersPage(Page):
    """`ladder_wanted` carries the Case and the Layer whose ladder is wanted."""

    title = "Layers"
    inspects = "layer"
    link = "Show in La&yers"
    own_links = ("Ladder",)
    ladder_wanted = Signal(object, object)

    def empty_text(self) -> str:
        if self.state.empty:
            return (
                "The model as a graph, each layer with its time and its error on every backend: it appears "
                "here as a comparison is measured (F5)."
            )
        if not self.state.run.job.layers:
            return "This run did not measure layers. Tick Layers in the form and run again to see them here."
        return "No case has its layers measured yet; they come last in each case."

    def has_content(self) -> bool:
        return any(m.layers for m in self.state.measurements)

    def build(self) -> QWidget:
        theme = self.theming.theme
        self._shown: object = None
        self._focus: Measurement | None = None
        self._bar = ChoiceBar(
            [
                ("model", "&Model"),
                ("batch", "&Batch"),
                ("precision", "&Precision"),
                ("focus", "B&ackend"),
                ("colour", "&Colour by"),
            ]
        )
        self._bar.chosen.connect(lambda _: self.invalidate())
        self._choices = self._bar.boxes
        for key, words in COLOURS.items():
            self._choices["colour"].addItem(words, key)
        self.graph = GraphView(theme)
        self.graph.picked.connect(self._on_picked)
        self.legend = ScaleLegend()
        self.table = LayerTable(theme)
        self.table.picked.connect(self._on_picked)
        self.bars = LayerBars(self.theming)
        self.bars.picked.connect(self._on_picked)
        self.ladder_action = QAction("Open in &ladder", self)
        self.ladder_action.setToolTip("Every kernel for the selected layer, checked and timed (Ctrl+Return)")
        self.ladder_action.setShortcut("Ctrl+Return")
        self.ladder_action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self.ladder_action.triggered.connect(self._on_ladder)
        self.addAction(self.ladder_action)
        self.table.addActions([self.ladder_action, *self.links])
        self.graph.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.graph.customContextMenuRequested.connect(self._on_menu)
        self._note = Label()
        self._note.setProperty("role", "muted")
        self._note.setWordWrap(True)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.setObjectName("layers-columns")
        split.addWidget(self._graph_side())
        figures = QSplitter(Qt.Orientation.Vertical)
        figures.setObjectName("layers-figures")
        figures.addWidget(self.table)
        figures.addWidget(self.bars)
        figures.setSizes([500, 500])
        right = QWidget()
        filled(QVBoxLayout(right), (figures, 1), self._note, margins=(0, 0, 0, 0))
        split.addWidget(right)
        split.setStretchFactor(0, 1)
        split.setStretchFactor(1, 2)
        split.setSizes([360, 640])
        body = QWidget()
        filled(QVBoxLayout(body), self._bar, (split, 1), margins=PAGE_MARGINS)
        return body

    def _graph_side(self) -> QWidget:
        side = QWidget()
        column = QVBoxLayout(side)
        column.setContentsMargins(0, 0, 0, 0)
        buttons = QHBoxLayout()
        for button in zoom_buttons(self.graph):
            buttons.addWidget(button)
        buttons.addStretch(1)
        ladder = QToolButton()
        ladder.setDefaultAction(self.ladder_action)
        ladder.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        buttons.addWidget(ladder)
        buttons.addWidget(self.go_button())
        column.addWidget(self.legend)
        column.addWidget(self.graph, 1)
        column.addLayout(buttons)
        return side

    # ---------------------------------------------------------------------------------------------- showing

    def refresh(self) -> None:
        with_layers = [m for m in self.state.measurements if m.layers]
        titles = {m.case.model: title(m.case.model) for m in with_layers}
        model = self._bar.offer("model", titles)
        ours = [m for m in with_layers if m.case.model == model]
        batches = {b: f"{b:,}" for b in sorted({m.case.batch for m in ours})}
        batch = self._bar.offer("batch", batches, layer_rows.fullest(ours))
        every, ours = ours, [m for m in ours if m.case.batch == batch]
        precision = self._bar.offer(
            "precision", {p: p for p in dict.fromkeys(m.case.precision for m in ours)}
        )
        beside = layer_rows.alike(ours, str(model), int(batch), str(precision))  # type: ignore[call-overload]
        names = {m.case.backend: contender(m) for m in beside}
        focus = self._bar.offer("focus", names)
        self._show(beside, next(m for m in beside if m.case.backend == focus), every)

    def select(self) -> None:
        case = self.state.case
        measurement = self.state.measurement(case)
        if case is not None and measurement is not None and measurement.layers:
            wanted = {
                "model": case.model,
                "batch": case.batch,
                "precision": case.precision,
                "focus": case.backend,
            }
            if self._bar.ask(wanted):
                self.invalidate()
        self.graph.select(self.state.layer)
        self.table.follow(self.state.layer)
        self.bars.follow(self.state.layer)
        self.ladder_action.setEnabled(self._layer() is not None)

    def spot(self) -> Spot | None:
        layer = self._layer() if self._body is not None else None
        if layer is None or self._focus is None:
            return None
        case = self._focus.case
        return Spot(case.model, layer.nodes, case.backend, case.batch, case.precision, layer.rung)

    def show_spot(self, spot: Spot) -> str:
        """The layer of these nodes, of the case that is most like the spot's."""
        model = stem(spot.model)
        ours = [m for m in self.state.measurements if m.layers and stem(m.case.model) == model]
        if not ours:
            return f"The run shown has no layers of {model}: open a comparison of it, or run one (F5)."
        found = [(m, layer) for m in ours for layer in m.layers if set(layer.nodes) & set(spot.nodes)]
        if not found:
            return f"No layer of {model} holds {', '.join(spot.nodes)}."

        def likeness(item: tuple[Measurement, Layer]) -> tuple[bool, ...]:
            case = item[0].case
            return (
                case.backend == spot.backend,
                case.batch == spot.batch,
                case.precision == spot.precision,
                item[1].nodes == spot.nodes,
            )

        measurement, layer = max(found, key=likeness)
        self.state.select(measurement.case, layer.output)
        return ""

    def restyle(self) -> None:
        self._shown = None
        self.table.theme = self.theming.theme
        self.graph.restyle(self.theming.theme)

    def _show(self, beside: Sequence[Measurement], focus: Measurement, every: Sequence[Measurement]) -> None:
        colour = str(self._choices["colour"].currentData())
        shown = (tuple(map(id, every)), tuple(map(id, beside)), id(focus), colour, self.theming.theme.name)
        self._focus = focus
        if shown == self._shown:
            return
        self._shown, self._kept = shown, tuple(every)  # kept, so that no id can come again
        focus = layer_rows.completed(focus, every)
        rows = layer_rows.rows(beside, focus)
        self._show_graph(rows)
        scale = self._scale(rows, focus, colour)
        self.legend.show_scale(scale)
        self.graph.show_looks({r.layer.output: self._look(r, colour, scale) for r in rows if r.layer.output})
        self.table.show_table(layer_rows.table(beside, focus))
        self.bars.show_rows(rows, sides(beside, focus))
        self.graph.select(self.state.layer)
        self.table.follow(self.state.layer)
        self.bars.follow(self.state.layer)
        self.ladder_action.setEnabled(self._layer() is not None)
        self._note.setText(note(rows, focus))

    def _show_graph(self, rows: Sequence[LayerRow]) -> None:
        inputs, edges = layer_rows.edges([row.layer for row in rows])
        boxes = [Box(name, name, plain=True) for name in inputs]
        for row in rows:
            layer = row.layer
            if layer.output:
                boxes.append(Box(layer.output, layer.op_type, row.name, layer_rows.shape_text(layer.shape)))
        self.graph.show_graph(boxes, edges)

    def _scale(self, rows: Sequence[LayerRow], focus: Measurement, colour: str) -> Scale | None:
        theme, who = self.theming.theme, contender(focus)
        if colour == "time":
            if all(row.layer.time_ns is None for row in rows):
                return None
            most = max((row.layer.time_ns or 0.0 for row in rows if row.layer.output), default=0.0)
            marks = (("not timed", theme.alternate),) if any(r.layer.time_ns is None for r in rows) else ()
            return Scale(f"Time of a layer, {who}", "time", 0.0, most, False, _time_text, theme, marks)
        errors = [error for row in rows if (error := _error(row, colour)) is not None]
        if not errors:
            return None
        high = max(error.bound for error in errors)
        seen = [error.rel_l2 for error in errors if 0 < error.rel_l2 < math.inf]
        low = 10.0 ** math.floor(math.log10(max(FLOOR, min([*seen, high / 1e3]))))
        marks = (("out of bounds", theme.failed),) if not all(e.ok for e in errors) else ()
        name = f"Rel. L2 error, {who}, bound {error_text(high)}"
        return Scale(name, "error", low, max(high, low * 10), True, error_text, theme, marks)

    def _look(self, row: LayerRow, colour: str, scale: Scale | None) -> NodeLook:
        words = layer_rows.tip(row)
        if colour == "time":
            time_ns = row.layer.time_ns
            if time_ns is None or scale is None:
                return NodeLook(tip=words)
            share = f" · {units.percent(row.share, 1)}" if row.share is not None else ""
            return NodeLook(scale.colour(time_ns).name(), units.duration(time_ns) + share, words)
        error = _error(row, colour)
        if error is None or scale is None:
            return NodeLook(tip=words)
        fill = scale.colour(error.rel_l2).name() if error.ok else self.theming.theme.failed
        return NodeLook(fill, error_text(error.rel_l2), words, failed=not error.ok)

    # ------------------------------------------------------------------------------------------- choosing

    def _on_picked(self, output: str) -> None:
        """A layer was selected in the graph or the table: select it everywhere."""
        if self._focus is not None:
            self.state.select(self._focus.case, output)

    def _layer(self) -> Layer | None:
        """The layer selected, of the measurement in focus; None where it stands for no node of the model."""
        layers = self._focus.layers if self._focus is not None else ()
        wanted = self.state.layer
        return next((layer for layer in layers if wanted and layer.output == wanted and layer.nodes), None)

    def _on_ladder(self) -> None:
        layer = self._layer()
        if layer is not None and self._focus is not None:
            self.ladder_wanted.emit(self._focus.case, layer)

    def _on_menu(self, at: QPoint) -> None:
        menu = QMenu(self.graph)
        menu.addActions([self.ladder_action, *self.links])
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.graph.viewport().mapToGlobal(at))


def _error(row: LayerRow, kind: str) -> ErrorStats | None:
    return row.layer.isolated if kind == "isolated" else row.layer.propagated


def _time_text(value_ns: float) -> str:
    return "0" if value_ns == 0 else units.duration(value_ns, 2)


def note(rows: Sequence[LayerRow], focus: Measurement) -> str:
    """What the figures are, below the table."""
    clocks = {
        "host": "the host's clock",
        "events": "the device's events",
        "stamps": "the clock inside the one kernel that computes these layers",
        "isolated": "each layer run as a separate model",
    }
    used = dict.fromkeys(row.layer.clock for row in rows if row.layer.time_ns is not None)
    how = " and ".join(clocks.get(clock, clock) for clock in used)
    parts = []
    if how:
        total = units.duration(sum(row.layer.time_ns or 0.0 for row in rows))
        parts.append(f"Times of {contender(focus)} by {how}, in a pass of their own; together {total}.")
    else:
        parts.append(f"No layer of {contender(focus)} was timed; they were checked alone.")
    parts.append("Errors are relative L2 errors against the float64 oracle.")
    return " ".join(parts)


PAGE = LayersPage
