"""Layers: the model as a graph, each layer coloured by its time or its error; a table; and bars of times.

A contender is a measurement: a backend at a precision. One of them is in focus: shares, rates, kernels
and errors are about it; times are shown of all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

import msgspec
from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QHelpEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QSizePolicy,
    QToolTip,
    QVBoxLayout,
    QWidget,
)

from bench.results import doubt
from bench.results.records import ErrorStats, Layer, Measurement, Run, stem
from bench.results.rows import label, title
from bench.views import layer_cards
from bench.views.cards import limit_of
from bench.views.sentences import limits
from bench.views.tables import comparison_tables as tables
from bench.views.tables.table import Column, Table
from bench.words import orders, palette, units
from gui.base.boxes import HORIZONTAL, VERTICAL, as_column, filled, scrolled, splitter
from gui.base.theme import GAP, GRID, PAGE_MARGINS, TIGHT, Theming, points, scaled, write
from gui.pages.page import Find, Page, Spot
from gui.widgets.cards import AnswersRow
from gui.widgets.colour_scale import Scale, ScaleLegend
from gui.widgets.controls import ChoiceBar, Label, as_tip, context_menu, new_action, tool_of
from gui.widgets.graph import Box, GraphView, NodeLook
from gui.widgets.table_view import TableView


@dataclass(frozen=True)
class LayerRow:
    """One layer, in the order in which layers run. layer: as the contender in focus has it; times_ns: by
    contender; total_ns: of all layers in focus; reference: the contender to compare with, or ""; limit: how
    near it comes to which limit of the machine (bench.views.cards.limit_of); kernels: of other contenders, by
    name; others: the layer that another run, laid over this one, has in its place, by the run's name."""

    place: int
    layer: Layer
    times_ns: dict[str, float]
    total_ns: float
    focus: str
    reference: str
    limit: tuple[float, str] | None = None
    kernels: dict[str, str] = field(default_factory=dict)
    others: dict[str, Layer | None] = field(default_factory=dict)

    @property
    def differences(self) -> dict[str, str]:
        """How it differs from the runs that are laid over, by the run's name; without those it does not."""
        told = {name: layer_cards.differs(self.layer, other) for name, other in self.others.items()}
        return {name: words for name, words in told.items() if words}

    @property
    def name(self) -> str:
        nodes = self.layer.nodes
        return (nodes[0] if len(nodes) == 1 else f"{nodes[0]} … {nodes[-1]}") if nodes else ""

    @property
    def share(self) -> float | None:
        time_ns = self.layer.time_ns
        return time_ns / self.total_ns if time_ns is not None and self.total_ns else None

    @property
    def speedup(self) -> float | None:
        """The reference's time divided by that of the contender in focus; above 1 is faster."""
        own, other = self.layer.time_ns, self.times_ns.get(self.reference)
        return other / own if own and other else None

    def rate(self, amount: int) -> float | None:
        """`amount` (FLOPs, bytes) in a second, None if there is no amount or no time."""
        time_ns = self.layer.time_ns
        return amount / time_ns * 1e9 if time_ns and amount else None


def contender(measurement: Measurement) -> str:
    return label(measurement.case.backend, measurement.case.precision)


def comparable(
    measurements: Iterable[Measurement], model: str, batch: int, precision: str
) -> list[Measurement]:
    """The measurements to show side by side: one with layers for each backend, at this batch size and
    precision. A reference that was not measured at this precision is shown in fp32."""
    at_precision: dict[str, Measurement] = {}
    plain: dict[str, Measurement] = {}
    for m in measurements:
        case = m.case
        if case.model != model or case.batch != batch or not m.layers:
            continue
        for chosen, wanted in ((at_precision, precision), (plain, "fp32")):
            if case.precision == wanted:
                other = chosen.get(case.backend)
                if other is None or case.images >= other.case.images:
                    chosen[case.backend] = m
    for name in {m.reference for m in at_precision.values()} - set(at_precision):
        if name in plain:
            at_precision[name] = plain[name]
    # References last, as in every chart and table.
    return sorted(at_precision.values(), key=lambda m: m.reference in ("", m.case.backend))


def completed(measurement: Measurement, others: Iterable[Measurement]) -> Measurement:
    """The measurement with its gaps filled from other cases of the same model, backend and precision:
    errors, which are measured once for all batch sizes, and the inputs of layers."""
    case = measurement.case
    known: dict[str, Layer] = {}
    for m in others:
        if (m.case.model, m.case.backend, m.case.precision) == (case.model, case.backend, case.precision):
            known |= {layer.output: layer for layer in m.layers if layer.isolated or layer.propagated}
    layers = []
    for layer in measurement.layers:
        known_layer = known.get(layer.output) if layer.output else None
        if known_layer is not None and layer.isolated is None and layer.propagated is None:
            layer = msgspec.structs.replace(
                layer, isolated=known_layer.isolated, propagated=known_layer.propagated
            )
        if known_layer is not None and not layer.inputs:
            layer = msgspec.structs.replace(layer, inputs=known_layer.inputs)
        layers.append(layer)
    return msgspec.structs.replace(measurement, layers=tuple(layers))


def fullest(measurements: Iterable[Measurement]) -> int:
    """The batch size with the most known layers, the smallest of several: a good one to begin with."""
    known: dict[int, int] = {}
    for m in measurements:
        full = sum(bool(layer.shape) + (layer.isolated is not None) for layer in m.layers)
        known[m.case.batch] = known.get(m.case.batch, 0) + full
    return max(sorted(known), key=lambda batch: known[batch])


def layer_rows(
    measurements: Sequence[Measurement],
    focus: Measurement,
    runs: Sequence[Run] = (),
    laid: Mapping[str, Measurement] = MappingProxyType({}),
) -> list[LayerRow]:
    """The layers of `focus`, with the times of all measurements. Layers that only others have are left
    out. runs: that know the machine's limits; laid: a measurement of each run that is laid over, by its
    name."""
    times: dict[tuple[str, str], dict[str, float]] = {}
    for m in measurements:
        for layer in m.layers:
            if layer.time_ns is not None:
                times.setdefault(_identity(layer), {})[contender(m)] = layer.time_ns
    total = sum(layer.time_ns or 0.0 for layer in focus.layers)
    names = {m.case.backend: contender(m) for m in measurements}
    reference = names.get(focus.reference, "") if focus.reference != focus.case.backend else ""
    kernels: dict[tuple[str, str], dict[str, str]] = {}
    for m in measurements:
        for layer in m.layers:
            if layer.rung and m is not focus and contender(m) != contender(focus):
                kernels.setdefault(_identity(layer), {})[contender(m)] = layer.rung
    over = {name: layer_cards.matched(focus.layers, m.layers) for name, m in laid.items()}
    return [
        LayerRow(
            place,
            layer,
            times.get(_identity(layer), {}),
            total,
            contender(focus),
            reference,
            limit_of(layer, focus, runs),
            kernels.get(_identity(layer), {}),
            {name: found.get(layer.output) for name, found in over.items() if layer.output},
        )
        for place, layer in enumerate(focus.layers, start=1)
    ]


def layer_edges(layers: Sequence[Layer]) -> tuple[list[str], list[tuple[str, str]]]:
    """The inputs of the model, and the edges between output tensors, both in order. Layers that a backend
    adds by itself are left out.

    Old runs do not say what a layer reads; there each layer is taken to read the one before it.
    """
    known = [layer for layer in layers if layer.output]
    place = {layer.output: index for index, layer in enumerate(known)}
    if not any(layer.inputs for layer in known):
        return [], [(a.output, b.output) for a, b in itertools.pairwise(known)]
    inputs: dict[str, None] = {}
    between = []
    for index, layer in enumerate(known):
        for name in layer.inputs:
            if name not in place:
                inputs[name] = None
            elif place[name] < index:
                between.append((name, layer.output))
    between = [(name, layer.output) for layer in known for name in layer.inputs if name in inputs] + between
    return list(inputs), between


def layer_table(
    measurements: Sequence[Measurement],
    focus: Measurement,
    runs: Sequence[Run] = (),
    laid: Mapping[str, Measurement] = MappingProxyType({}),
) -> Table[LayerRow]:
    """The table of layers: what each is, its time on each contender, and figures of the contender in
    focus; how it differs from the runs that are laid over. runs, laid: as `layer_rows`."""
    who, own = contender(focus), doubt.own(focus)
    reference = next((m for m in measurements if m.case.backend == focus.reference and m is not focus), None)
    doubts = (*own, *(doubt.of_other(contender(reference), doubt.own(reference)) if reference else ()))
    figure = partial(Column[LayerRow], doubts=lambda _: own)
    # What is compared stands first, so that it is seen without scrolling.
    first = [m for m in (focus, reference) if m is not None]
    times = [_time_column(contender(m), doubt.own(m)) for m in first if timed(m)]
    other_times = [
        _time_column(contender(m), doubt.own(m)) for m in measurements if m not in first and timed(m)
    ]
    columns = (
        Column("place", title="#", tip="in the order they run"),
        Column("layer", lambda r: r.name or None, left=True, tip="ONNX nodes that run as one step"),
        Column("op_type", lambda r: r.layer.op_type, title="op", left=True),
        *times,
        *(column for name, m in laid.items() for column in _laid_columns(name, m)),
        Column("speedup", None, orders.speed, lambda _: doubts, "speed-up",
               doubt.read_out("the reference's time over its own, each as it is: a layer's time has no "
                              "interval, so that nothing is decided by it", doubts)),
        figure("share", text=lambda v: units.percent(v, 1), tip=f"of {who}'s time"),
        Column("shape", lambda r: r.layer.shape or None, shape_text, title="output shape", left=True),
        *other_times,
        figure("gflops_per_s", lambda r: _giga(r.rate(r.layer.flops)), units.digits, title="GFLOP/s",
               tip=who),
        Column("gb_per_s", lambda r: _giga(r.rate(r.layer.nbytes)), units.digits,
               lambda r: (*own, *tables.impossible(r)), "GB/s", f"{who}; of bytes as it keeps them"),
        Column("rung", lambda r: kernel_words(r.layer), title="kernel", left=True,
               tip=f"{who}; timed: the fastest here"),
        *([Column("computed_in", lambda r: r.layer.precision or None, title="in", left=True,
                  tip=f"{who}: what the kernel computes in, which may be finer than was asked for")]
          if any(layer.precision not in ("", focus.case.precision) for layer in focus.layers) else []),
        *(Column(f"{contender(m)} rung", partial(_kernel_of, name=contender(m)), left=True,
                 title=f"kernel of {contender(m)}")
          for m in measurements if contender(m) != who and any(layer.rung for layer in m.layers)),
        figure("limit", lambda r: None if r.limit is None else r.limit[0], limits.percent, title="of limit",
               cell=lambda r: _of_limit(*r.limit) if r.limit else "",
               tip=f"{who}: how near it comes to the nearer limit of this machine, as it was measured"),
        Column("cause", lambda r: _cause(r), left=True, tip="what holds it back"),
        *(replace(column, text=error_text) if column.name.endswith("_rel_l2") else column
          for kind in tables.ERRORS.values() for column in kind),
        Column("parameters", lambda r: r.layer.parameters or None),
        Column("flops", lambda r: r.layer.flops or None, units.si, title="FLOPs"),
        Column("nbytes", lambda r: r.layer.nbytes or None, units.nbytes, title="bytes",
               tip="read and written, at least, as it keeps them"),
    )  # fmt: skip
    return Table(columns, layer_rows(measurements, focus, runs, laid))


def _kernel_of(row: LayerRow, name: str) -> str | None:
    return row.kernels.get(name)


def _of_limit(share: float, which: str) -> str:
    return f"{limits.percent(share)} of {limits.NAMES[which]}"


def _cause(row: LayerRow) -> str | None:
    return limits.standing(*row.limit).partition(" (")[0] if row.limit is not None else None


def _laid_columns(name: str, measurement: Measurement) -> tuple[Column[LayerRow], Column[LayerRow]]:
    """The columns of a run that is laid over: its times, and how its layers differ."""
    doubts = doubt.own(measurement)

    def seconds(row: LayerRow) -> float | None:
        other = row.others.get(name)
        return None if other is None or other.time_ns is None else other.time_ns * 1e-9

    title = f"{contender(measurement)} · {name}"
    return (
        Column(f"{title} laid_s", seconds, tables.seconds, lambda _: doubts, title, measurement.case.words),
        Column(f"{name} differs", lambda r: r.differences.get(name), left=True, title=f"≠ {name}",
               tip=f"how the layer shown differs from that of {name}; times by more than 10 %"),
    )  # fmt: skip


def timed(measurement: Measurement) -> bool:
    """Whether any layer of a measurement was timed."""
    return any(layer.time_ns is not None for layer in measurement.layers)


def kernel_words(layer: Layer) -> str | None:
    """The rung of a layer, and how it was chosen if not by the ladder's order."""
    reason = f" ({layer.chosen})" if layer.chosen in ("timed", "named") else ""
    return f"{layer.rung}{reason}" if layer.rung else None


def _time_column(name: str, doubts: tuple[str, ...]) -> Column[LayerRow]:
    """The column of one measurement's times. Doubts about the measurement hold for its layers, too."""
    return Column(
        f"{name} time_s",
        lambda r: None if name not in r.times_ns else r.times_ns[name] * 1e-9,
        tables.seconds,
        lambda _: doubts,
        name,
        doubt.read_out(f"time of the layer on {name}", doubts),
    )


def _giga(value: float | None) -> float | None:
    return None if value is None else value * 1e-9


def _identity(layer: Layer) -> tuple[str, str]:
    return (layer.output, "" if layer.output else layer.op_type)


def shape_text(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape))


def error_text(value: float) -> str:
    return "0" if value == 0 else f"{value:.1e}".replace(".0e", "e")


def layer_tip(row: LayerRow) -> str:
    """What is known of a layer, in a few lines."""
    layer = row.layer
    lines = [f"{layer.op_type}: {', '.join(layer.nodes)}" if layer.nodes else layer.op_type]
    for name, time_ns in row.times_ns.items():
        lines.append(f"{name}: {units.duration(time_ns)}")
    if layer.beyond:
        lines.append(doubt.CACHED if layer.beyond == "cache" else doubt.IMPOSSIBLE)
    lines += [f"≠ {name}: {words}" for name, words in row.differences.items()]
    for kind, error in (("isolated", layer.isolated), ("propagated", layer.propagated)):
        if error is not None:
            lines.append(f"{kind} error: {error_verdict(error)}")
    return "\n".join(lines)


def error_verdict(error: ErrorStats) -> str:
    if error.ok:
        return f"{error_text(error.rel_l2)}, within {error_text(error.bound)}"
    return f"{error_text(error.rel_l2)}, {error.reason or 'out of bounds'}"


BAR = 3 * GRID  # pixels a bar is high
NAMES = 150  # pixels of the names at most


@dataclass(frozen=True)
class Side:
    """A backend in the bars of every layer. unsure: it is in doubt, and hatched."""

    name: str
    colour: str
    unsure: bool


def sides(measurements: Sequence[Measurement], focus: Measurement) -> list[Side]:
    """The contender in focus and its reference; for a reference, all others in its place."""
    wanted = {focus.case.backend, focus.reference}
    others = [m for m in measurements if m.case.backend != focus.case.backend]
    if focus.reference in ("", focus.case.backend):
        wanted |= {m.case.backend for m in others}
    drawn = [focus, *(m for m in others if m.case.backend in wanted)]
    return [Side(contender(m), palette.backend(m.case.backend), bool(doubt.own(m))) for m in drawn]


class LayerBars(QWidget):
    """Each layer's time as bars, one for each side. `picked` carries the output tensor of the layer that
    was clicked."""

    picked = Signal(str)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("layer-bars")
        self.heading = Label(rich=True)
        self.bars = _Bars(theming)
        self.bars.picked.connect(self.picked)
        self._scroll = scrolled(self.bars, sideways=False, focus=False)
        filled(QVBoxLayout(self), self.heading, (self._scroll, 1), margins=(0, GAP, 0, 0), spacing=TIGHT)

    def show_rows(self, rows: Sequence[LayerRow], bar_sides: Sequence[Side]) -> None:
        rows = [row for row in rows if row.times_ns]
        if not rows:
            bar_sides = ()
        names = [f'<span style="color:{side.colour}">■</span> {side.name}' for side in bar_sides]
        names += [] if rows else ["no layer was timed"]
        hatched = ", hatched: doubtful" if any(side.unsure for side in bar_sides) else ""
        self.heading.setText(f"<b>Time of each layer</b> &nbsp; {' &nbsp; '.join(names)}{hatched}")
        self.bars.show_rows(rows, bar_sides)

    def follow(self, output: str) -> None:
        """Mark a layer that was selected elsewhere, and scroll to it."""
        at = self.bars.mark(output)
        if at is not None:
            self._scroll.ensureVisible(0, at.center().y(), 0, at.height())


class _Bars(QWidget):
    picked = Signal(str)

    def __init__(self, theming: Theming) -> None:
        super().__init__()
        self._theming = theming
        self._rows: Sequence[LayerRow] = ()
        self._sides: Sequence[Side] = ()
        self._marked = ""
        self._most = 1.0
        self.setAccessibleName("Time of each layer, a bar a backend")
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def sizeHint(self) -> QSize:
        return QSize(300, len(self._rows) * self._step())

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def show_rows(self, rows: Sequence[LayerRow], bar_sides: Sequence[Side]) -> None:
        self._rows, self._sides = rows, bar_sides
        times = [row.times_ns.get(side.name, 0.0) for row in rows for side in bar_sides]
        self._most = max(times, default=1.0) or 1.0
        self.updateGeometry()
        self.update()

    def mark(self, output: str) -> QRect | None:
        """Mark a layer, and return its row in pixels, None if it has none."""
        self._marked = output
        self.update()
        places = (i for i, row in enumerate(self._rows) if output and row.layer.output == output)
        at = next(places, None)
        return None if at is None else QRect(0, at * self._step(), self.width(), self._step())

    def bar(self, place: int, side: int) -> QRect:
        """The rectangle of a bar. place: of the layer; side: index of the backend."""
        left, room = self._across()
        time_ns = self._rows[place].times_ns.get(self._sides[side].name, 0.0)
        top = place * self._step() + TIGHT + side * (scaled(BAR) + 1)
        return QRect(left, top, max(1 if time_ns else 0, round(room * time_ns / self._most)), scaled(BAR))

    # ------------------------------------------------------------------------------------------ the inside

    def _step(self) -> int:
        return max(1, len(self._sides)) * (scaled(BAR) + 1) + GAP

    def _across(self) -> tuple[int, int]:
        """Where bars begin, and the length of the longest one, in pixels. Its figure has room behind it."""
        metrics = self.fontMetrics()
        # 2 pixels more: the advance is rounded, and the text might be cut.
        widest = max((metrics.horizontalAdvance(row.name) for row in self._rows), default=0) + 2
        names = min(scaled(NAMES), widest)
        left = names + GAP + TIGHT
        return left, max(20, self.width() - left - metrics.horizontalAdvance("000.0 ms !") - GAP)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = self._theming.theme
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(theme.paper))
        step, (left, _) = self._step(), self._across()
        first, last = event.rect().top() // step, event.rect().bottom() // step
        small = self.font()
        small.setPointSizeF(points("caption"))
        for place in range(first, min(last + 1, len(self._rows))):
            row = self._rows[place]
            if row.layer.output and row.layer.output == self._marked:
                painter.fillRect(QRect(0, place * step, self.width(), step), QColor(theme.alternate))
                painter.fillRect(QRect(0, place * step, 3, step), QColor(theme.accent))
            painter.setFont(self.font())
            write(painter, QRectF(GAP, place * step, left - GAP - TIGHT, step), row.name, theme.ink)
            painter.setFont(small)
            for number, side in enumerate(self._sides):
                time_ns = row.times_ns.get(side.name)
                if time_ns is None:
                    continue
                bar = self.bar(place, number)
                if side.unsure:
                    painter.setPen(QColor(side.colour))
                    painter.setBrush(QBrush(QColor(side.colour), Qt.BrushStyle.BDiagPattern))
                    painter.drawRect(bar.adjusted(0, 0, -1, -1))
                else:
                    painter.fillRect(bar, QColor(side.colour))
                painter.setPen(QColor(theme.muted))
                mark = doubt.MARK if side.unsure else ""
                at = QRect(bar.right() + GAP, bar.top() - 2, 200, scaled(BAR) + 4)
                painter.drawText(at, int(Qt.AlignmentFlag.AlignVCenter), units.duration(time_ns) + mark)

    def _at(self, position: QPoint) -> LayerRow | None:
        place = position.y() // self._step()
        return self._rows[place] if 0 <= place < len(self._rows) else None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        row = self._at(event.position().toPoint())
        if row is not None and row.layer.output:
            self.picked.emit(row.layer.output)

    def event(self, event: object) -> bool:
        if isinstance(event, QHelpEvent) and (row := self._at(event.pos())) is not None:
            QToolTip.showText(event.globalPos(), as_tip(layer_tip(row)), self)
            return True
        return super().event(event)  # type: ignore[arg-type]


class LayerTable(TableView):
    """`picked` carries the output tensor of the layer that the user went to, "" for one that a backend
    adds."""

    widest = 260

    def show_table(self, table: Table[LayerRow]) -> None:
        """It takes no more room than its rows need: the bars below have the rest."""
        super().show_table(table)
        line, head = self.verticalHeader().defaultSectionSize(), self.horizontalHeader().sizeHint().height()
        below = self.horizontalScrollBar().sizeHint().height() + 2 * self.frameWidth()
        self.setMaximumHeight(head + max(1, self.source.rowCount()) * line + below)

    def follow(self, target: str | None) -> None:
        """Go to a layer. One that a backend adds cannot be selected elsewhere, so it stays selected here."""
        here = self.currentIndex()
        if target or not here.isValid() or self.target(self.source.rows[here.row()]):
            super().follow(target or None)

    def target(self, row: LayerRow) -> str:
        return row.layer.output

    def tip(self, row: LayerRow, column: Column[LayerRow]) -> str:
        return layer_tip(row)

    def ink(self, row: LayerRow, column: Column[LayerRow]) -> QColor | None:
        return QColor(self.theme.failed) if column.of(row) is False else None

    def heading_swatch(self, column: Column[LayerRow]) -> QColor | None:
        who, _, what = column.name.rpartition(" ")
        return QColor(palette.backend(who.partition(" ")[0])) if what == "time_s" else None


ORDER = 20
COLOURS = {
    "time": "Time",
    "isolated": "Error of the layer alone",
    "propagated": "Error with those before it",
}
LEAST_HEIGHT = 240  # pixels of graph, table and bars, below which the page scrolls
FLOOR = 1e-9  # the scale of errors reaches no lower than this


class LayersPage(Page):
    """The page of layers. `ladder_wanted` carries the Case and the Layer whose ladder is wanted."""

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
        context_menu(self.graph, lambda: [self.ladder_action, *self.links])
        self._note = Label(role="muted", wrap=True)
        figures = splitter("layers-figures", VERTICAL, self.table, self.bars, sizes=[500, 500])
        right = as_column((figures, 1), self._note)
        to_others = (tool_of(self.ladder_action), self.go_button())
        buttons = filled(QHBoxLayout(), *self.graph.zoom_buttons(), 1, *to_others)
        left = as_column(self.legend, (self.graph, 1), buttons)
        split = splitter("layers-columns", HORIZONTAL, left, right, sizes=[360, 640], stretch=(1, 2))
        # It takes what room there is; with a height of its own a page that is high enough would scroll, too.
        split.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Ignored)
        split.setMinimumHeight(LEAST_HEIGHT)
        self.answers = AnswersRow(self.theming)
        self.answers.picked.connect(self._on_picked)
        return as_column(self._bar, self.answers, (split, 1), margins=PAGE_MARGINS)

    # ---------------------------------------------------------------------------------------------- showing

    def refresh(self) -> None:
        with_layers = [m for m in self.state.measurements if m.layers]
        titles = {m.case.model: title(m.case.model) for m in with_layers}
        model = self._bar.offer("model", titles)
        ours = [m for m in with_layers if m.case.model == model]
        batches = {b: f"{b:,}" for b in sorted({m.case.batch for m in ours})}
        batch = self._bar.offer("batch", batches, fullest(ours))
        every, ours = ours, [m for m in ours if m.case.batch == batch]
        precision = self._bar.offer(
            "precision", {p: p for p in dict.fromkeys(m.case.precision for m in ours)}
        )
        beside = comparable(ours, str(model), int(batch), str(precision))  # type: ignore[call-overload]
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
        self._mark()

    def findable(self) -> Sequence[Find]:
        found: dict[str, Find] = {}
        for measured in self.state.measurements:
            for layer in measured.layers:
                if layer.nodes:
                    words = f"{' + '.join(layer.nodes)} of {measured.case.model}"
                    go = partial(self.state.select, measured.case, layer.output)
                    found.setdefault(words, Find("Layer", words, go, layer.op_type, here=True))
        return tuple(found.values())

    def spot(self) -> Spot | None:
        layer = self._layer() if self._body is not None else None
        if layer is None or self._focus is None:
            return None
        case = self._focus.case
        return Spot(case.model, layer.nodes, case.backend, case.batch, case.precision, layer.rung)

    def show_spot(self, spot: Spot) -> str:
        """Select the layer of these nodes, in the case that is most similar to the spot's."""
        model = stem(spot.model)
        ours = [m for m in self.state.measurements if m.layers and stem(m.case.model) == model]
        if not ours:
            return f"The run shown has no layers of {model}: open a comparison of it, or run one (F5)."
        candidates = [(m, layer) for m in ours for layer in m.layers if set(layer.nodes) & set(spot.nodes)]
        if not candidates:
            return f"No layer of {model} holds {', '.join(spot.nodes)}."

        def likeness(item: tuple[Measurement, Layer]) -> tuple[bool, ...]:
            case = item[0].case
            return (
                case.backend == spot.backend,
                case.batch == spot.batch,
                case.precision == spot.precision,
                item[1].nodes == spot.nodes,
            )

        measurement, layer = max(candidates, key=likeness)
        self.state.select(measurement.case, layer.output)
        return ""

    def restyle(self) -> None:
        self._shown = None

    def _laid(self, focus: Measurement) -> dict[str, Measurement]:
        """What the runs that are laid over have of these layers, by the run's name."""
        found = {
            overlay.name: layer_cards.counterpart(focus, overlay.measurements)
            for overlay in self.state.overlays
        }
        return {name: m for name, m in found.items() if m is not None}

    def _show(self, beside: Sequence[Measurement], focus: Measurement, every: Sequence[Measurement]) -> None:
        colour = str(self._choices["colour"].currentData())
        laid, runs = self._laid(focus), [self.state.run]
        drawn = (
            *(tuple(map(id, every)), tuple(map(id, beside)), id(focus), colour, self.theming.theme.name),
            *(tuple((name, id(m)) for name, m in laid.items()), id(self.state.run.limits)),
        )
        self._focus = focus
        if drawn == self._shown:
            return
        self._shown, self._measurements = drawn, tuple(every)  # kept alive, so that no id is used again
        focus = completed(focus, every)
        rows = layer_rows(beside, focus, runs, laid)
        self._show_graph(rows)
        scale = self._scale(rows, focus, colour)
        self.legend.show_scale(scale)
        self.graph.show_looks({r.layer.output: self._look(r, colour, scale) for r in rows if r.layer.output})
        self.table.show_table(layer_table(beside, focus, runs, laid))
        self.bars.show_rows(rows, sides(beside, focus))
        self._mark()
        self._note.setText(note(rows, focus, laid))
        names = {m.case.backend: m for m in beside}
        reference = names.get(focus.reference) if focus.reference != focus.case.backend else None
        found = layer_cards.answers(focus, reference, [self.state.run])
        text = layer_cards.text(focus, reference, [self.state.run])
        self.answers.show_answers(contender(focus), found, f"{contender(focus)}: {text}")

    def _mark(self) -> None:
        """Mark the selected layer in graph, table and bars."""
        self.graph.select(self.state.layer)
        self.table.follow(self.state.layer)
        self.bars.follow(self.state.layer)
        self.ladder_action.setEnabled(self._layer() is not None)

    def _show_graph(self, rows: Sequence[LayerRow]) -> None:
        inputs, edges = layer_edges([row.layer for row in rows])
        boxes = [Box(name, name, plain=True) for name in inputs]
        for row in rows:
            layer = row.layer
            if layer.output:
                boxes.append(Box(layer.output, layer.op_type, row.name, shape_text(layer.shape)))
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
        look = self._plain_look(row, colour, scale)
        return replace(look, value=f"≠ {look.value}".rstrip()) if row.differences else look

    def _plain_look(self, row: LayerRow, colour: str, scale: Scale | None) -> NodeLook:
        words = layer_tip(row)
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
        """Select the layer on all pages."""
        if self._focus is not None:
            self.state.select(self._focus.case, output)

    def _layer(self) -> Layer | None:
        """The selected layer in the measurement in focus, None if it belongs to no node of the model."""
        layers = self._focus.layers if self._focus is not None else ()
        wanted = self.state.layer
        return next((layer for layer in layers if wanted and layer.output == wanted and layer.nodes), None)

    def _on_ladder(self) -> None:
        layer = self._layer()
        if layer is not None and self._focus is not None:
            self.ladder_wanted.emit(self._focus.case, layer)


def _error(row: LayerRow, kind: str) -> ErrorStats | None:
    return row.layer.isolated if kind == "isolated" else row.layer.propagated


def note(
    rows: Sequence[LayerRow], focus: Measurement, laid: Mapping[str, Measurement] = MappingProxyType({})
) -> str:
    """How the figures were measured, for below the table; and what the runs that are laid over have beside
    the layers shown."""
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
    for name, m in laid.items():
        found = layer_cards.matched(focus.layers, m.layers).values()
        more = [layer_cards.layer_name(layer) for layer in m.layers if layer.output and layer not in found]
        differ = sum(name in row.differences for row in rows)
        parts.append(f"≠ {name}: {differ} of {len(rows)} layers differ.")
        parts += [f"Only {name} has {orders.listed(more)}."] if more else []
    return " ".join(parts)


PAGE = LayersPage
