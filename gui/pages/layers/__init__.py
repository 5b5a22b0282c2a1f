"""Layers: the model as a graph, each layer coloured by its time or error, and the table of figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QHBoxLayout,
    QWidget,
)

from bench.results.records import ErrorStats, Layer, Measurement, stem
from bench.results.rows import title
from bench.views.tables.table import Column
from bench.words import palette, units
from gui.base.boxes import HORIZONTAL, VERTICAL, as_column, filled, splitter
from gui.base.scale import PAGE_MARGINS
from gui.pages.layers import layer_rows
from gui.pages.layers.layer_bars import LayerBars, sides
from gui.pages.layers.layer_rows import LayerRow, contender, error_text, tip
from gui.pages.page import Page, Spot
from gui.widgets.colour_scale import Scale, ScaleLegend
from gui.widgets.combo import ChoiceBar
from gui.widgets.controls import new_action, popup, tool_of
from gui.widgets.graph.items import Box, NodeLook
from gui.widgets.graph.view import GraphView
from gui.widgets.labels import Label
from gui.widgets.table_view import TableView


class LayerTable(TableView):
    """`picked` carries the output tensor of the layer gone to ("" for what a backend adds itself)."""

    widest = 260

    def follow(self, target: str | None) -> None:
        """What a backend adds itself cannot be selected elsewhere, and stays."""
        here = self.currentIndex()
        if target or not here.isValid() or self.target(self.source.rows[here.row()]):
            super().follow(target or None)

    def target(self, row: LayerRow) -> str:
        return row.layer.output

    def tip(self, row: LayerRow, column: Column[LayerRow]) -> str:
        return tip(row)

    def ink(self, row: LayerRow, column: Column[LayerRow]) -> QColor | None:
        return QColor(self.theme.failed) if column.of(row) is False else None

    def heading_swatch(self, column: Column[LayerRow]) -> QColor | None:
        who, _, what = column.name.rpartition(" ")
        return QColor(palette.backend(who.partition(" ")[0])) if what == "time_s" else None


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
        self._choices["colour"].offer(COLOURS)
        self.graph = GraphView(self.theming)
        self.graph.picked.connect(self._on_picked)
        self.legend = ScaleLegend()
        self.table = LayerTable("Layers", self.theming)
        self.table.horizontalHeader().setSectionsMovable(True)
        self.table.picked.connect(self._on_picked)
        self.bars = LayerBars(self.theming)
        self.bars.picked.connect(self._on_picked)
        self.ladder_action = new_action(
            self,
            "Open in &ladder",
            self._on_ladder,
            tip="Every kernel for the selected layer, checked and timed (Ctrl+Return)",
            keys="Ctrl+Return",
        )
        self.addAction(self.ladder_action)
        self.table.addActions([self.ladder_action, *self.links])
        self.graph.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.graph.customContextMenuRequested.connect(
            lambda at: popup(self.graph, [self.ladder_action, *self.links], at)
        )
        self._note = Label(role="muted", wrap=True)
        figures = splitter("layers-figures", VERTICAL, self.table, self.bars, sizes=[500, 500])
        right = as_column((figures, 1), self._note)
        to_others = (tool_of(self.ladder_action), self.go_button())
        buttons = filled(QHBoxLayout(), *self.graph.zoom_buttons(), 1, *to_others)
        left = as_column(self.legend, (self.graph, 1), buttons)
        split = splitter("layers-columns", HORIZONTAL, left, right, sizes=[360, 640], stretch=(1, 2))
        return as_column(self._bar, (split, 1), margins=PAGE_MARGINS)

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
            return Scale(
                *(f"Time of a layer, {who}", "time", 0.0, most, False),
                lambda value_ns: "0" if value_ns == 0 else units.duration(value_ns, 2),
                theme,
                marks,
            )
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


def _error(row: LayerRow, kind: str) -> ErrorStats | None:
    return row.layer.isolated if kind == "isolated" else row.layer.propagated


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
