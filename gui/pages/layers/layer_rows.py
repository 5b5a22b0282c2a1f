"""A model's layers on several contenders side by side, from records alone: rows, columns and a graph.

A contender is a measurement: a backend at a precision. One is in focus: shares, rates, kernels and errors are
its; times are shown of all.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from bench.results import doubt
from bench.results.records import ErrorStats, Layer, Measurement
from bench.results.rows import label
from bench.views.tables import comparison_tables as tables
from bench.views.tables.table import Column, Table
from bench.words import orders, units


@dataclass(frozen=True)
class LayerRow:
    """A layer in the order it runs. layer: on the contender in focus; times_ns: by contender's name;
    total_ns: of all its layers; reference: the contender it is compared with, or ""."""

    place: int
    layer: Layer
    times_ns: dict[str, float]
    total_ns: float
    focus: str
    reference: str

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
        """The reference's time over that of the one in focus: above 1 is faster."""
        own, other = self.layer.time_ns, self.times_ns.get(self.reference)
        return other / own if own and other else None

    def rate(self, amount: int) -> float | None:
        """`amount` (FLOPs, bytes) a second; None where there is nothing to do or no time."""
        time_ns = self.layer.time_ns
        return amount / time_ns * 1e9 if time_ns and amount else None


def contender(measurement: Measurement) -> str:
    return label(measurement.case.backend, measurement.case.precision)


def alike(measurements: Iterable[Measurement], model: str, batch: int, precision: str) -> list[Measurement]:
    """What can stand side by side: one measurement with layers a backend, at this batch and precision; a
    backend that is the reference of one of them and has not this precision is taken in fp32."""
    found: dict[str, Measurement] = {}
    plain: dict[str, Measurement] = {}
    for m in measurements:
        case = m.case
        if case.model != model or case.batch != batch or not m.layers:
            continue
        for kept, wanted in ((found, precision), (plain, "fp32")):
            if case.precision == wanted:
                other = kept.get(case.backend)
                if other is None or case.images >= other.case.images:
                    kept[case.backend] = m
    for name in {m.reference for m in found.values()} - set(found):
        if name in plain:
            found[name] = plain[name]
    # References last, as in every chart and table.
    return sorted(found.values(), key=lambda m: m.reference in ("", m.case.backend))


def completed(measurement: Measurement, others: Iterable[Measurement]) -> Measurement:
    """`measurement` with what a thinned run has left out of its layers and another case of the same model,
    backend and precision has kept: errors, taken once for all batch sizes, and what a layer reads."""
    case = measurement.case
    known: dict[str, Layer] = {}
    for m in others:
        if (m.case.model, m.case.backend, m.case.precision) == (case.model, case.backend, case.precision):
            known |= {layer.output: layer for layer in m.layers if layer.isolated or layer.propagated}
    layers = []
    for layer in measurement.layers:
        kept = known.get(layer.output) if layer.output else None
        if kept is not None and layer.isolated is None and layer.propagated is None:
            layer = msgspec.structs.replace(layer, isolated=kept.isolated, propagated=kept.propagated)
        if kept is not None and not layer.inputs:
            layer = msgspec.structs.replace(layer, inputs=kept.inputs)
        layers.append(layer)
    return msgspec.structs.replace(measurement, layers=tuple(layers))


def fullest(measurements: Iterable[Measurement]) -> int:
    """The batch size whose layers are known best, the smallest of several: where to begin."""
    known: dict[int, int] = {}
    for m in measurements:
        full = sum(bool(layer.shape) + (layer.isolated is not None) for layer in m.layers)
        known[m.case.batch] = known.get(m.case.batch, 0) + full
    return max(sorted(known), key=lambda batch: known[batch])


def rows(measurements: Sequence[Measurement], focus: Measurement) -> list[LayerRow]:
    """The layers of `focus`, with the times of all; what only others add is not among them."""
    times: dict[tuple[str, str], dict[str, float]] = {}
    for m in measurements:
        for layer in m.layers:
            if layer.time_ns is not None:
                times.setdefault(_identity(layer), {})[contender(m)] = layer.time_ns
    total = sum(layer.time_ns or 0.0 for layer in focus.layers)
    names = {m.case.backend: contender(m) for m in measurements}
    reference = names.get(focus.reference, "") if focus.reference != focus.case.backend else ""
    return [
        LayerRow(place, layer, times.get(_identity(layer), {}), total, contender(focus), reference)
        for place, layer in enumerate(focus.layers, start=1)
    ]


def edges(layers: Sequence[Layer]) -> tuple[list[str], list[tuple[str, str]]]:
    """(inputs of the model, edges by output tensor), both in order; what a backend adds itself is in neither.

    Runs from before layers told what they read have none; there each layer is taken to read the one before.
    """
    known = [layer for layer in layers if layer.output]
    place = {layer.output: index for index, layer in enumerate(known)}
    if not any(layer.inputs for layer in known):
        return [], [(a.output, b.output) for a, b in itertools.pairwise(known)]
    inputs: dict[str, None] = {}
    found = []
    for index, layer in enumerate(known):
        for name in layer.inputs:
            if name not in place:
                inputs[name] = None
            elif place[name] < index:
                found.append((name, layer.output))
    found = [(name, layer.output) for layer in known for name in layer.inputs if name in inputs] + found
    return list(inputs), found


def table(measurements: Sequence[Measurement], focus: Measurement) -> Table[LayerRow]:
    """What the layer is, its time on each contender, then figures of the one in focus."""
    who, own = contender(focus), doubt.own(focus)
    reference = next((m for m in measurements if m.case.backend == focus.reference and m is not focus), None)
    held = (*own, *(doubt.of(contender(reference), doubt.own(reference)) if reference else ()))
    figure = partial(Column[LayerRow], doubts=lambda _: own)
    columns = (
        Column("place", title="#", tip="in the order they run"),
        Column("layer", lambda r: r.name or None, left=True, tip="ONNX nodes that run as one step"),
        Column("op_type", lambda r: r.layer.op_type, title="op", left=True),
        Column("shape", lambda r: r.layer.shape or None, shape_text, title="output shape", left=True),
        *(_time_column(contender(m), doubt.own(m)) for m in measurements if timed(m)),
        figure("share", text=lambda v: units.percent(v, 1), tip=f"of {who}'s time"),
        Column("speedup", None, orders.speed, lambda _: held, "speed-up",
               doubt.told("the reference's time over its own, each as it is: a layer's time has no interval, "
                          "so that nothing is decided by it", held)),
        figure("gflops_per_s", lambda r: _giga(r.rate(r.layer.flops)), units.digits, title="GFLOP/s",
               tip=who),
        Column("gb_per_s", lambda r: _giga(r.rate(r.layer.nbytes)), units.digits,
               lambda r: (*own, *tables.impossible(r)), "GB/s", f"{who}; of bytes as it keeps them"),
        Column("rung", lambda r: kernel(r.layer), title="kernel", left=True,
               tip=f"{who}; timed: the fastest here"),
        *(replace(column, text=error_text) if column.name.endswith("_rel_l2") else column
          for kind in tables.ERRORS.values() for column in kind),
        Column("parameters", lambda r: r.layer.parameters or None),
        Column("flops", lambda r: r.layer.flops or None, units.si, title="FLOPs"),
        Column("nbytes", lambda r: r.layer.nbytes or None, units.nbytes, title="bytes",
               tip="read and written, at least, as it keeps them"),
    )  # fmt: skip
    return Table(columns, rows(measurements, focus))


def timed(measurement: Measurement) -> bool:
    """Whether any of its layers was."""
    return any(layer.time_ns is not None for layer in measurement.layers)


def kernel(layer: Layer) -> str | None:
    """The rung, with what chose it where that is not the ladder's order."""
    told = f" ({layer.chosen})" if layer.chosen in ("timed", "named") else ""
    return f"{layer.rung}{told}" if layer.rung else None


def _time_column(name: str, doubts: tuple[str, ...]) -> Column[LayerRow]:
    """Of one measurement, whose doubts are its layers' too."""
    return Column(
        f"{name} time_s",
        lambda r: None if name not in r.times_ns else r.times_ns[name] * 1e-9,
        tables.seconds,
        lambda _: doubts,
        name,
        doubt.told(f"time of the layer on {name}", doubts),
    )


def _giga(value: float | None) -> float | None:
    return None if value is None else value * 1e-9


def _identity(layer: Layer) -> tuple[str, str]:
    return (layer.output, "" if layer.output else layer.op_type)


def shape_text(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape))


def error_text(value: float) -> str:
    return "0" if value == 0 else f"{value:.1e}".replace(".0e", "e")


def tip(row: LayerRow) -> str:
    """What is known of a layer, in a few lines."""
    layer = row.layer
    lines = [f"{layer.op_type}: {', '.join(layer.nodes)}" if layer.nodes else layer.op_type]
    for name, time_ns in row.times_ns.items():
        lines.append(f"{name}: {units.duration(time_ns)}")
    if layer.beyond:
        lines.append(doubt.CACHED if layer.beyond == "cache" else doubt.IMPOSSIBLE)
    for kind, error in (("isolated", layer.isolated), ("propagated", layer.propagated)):
        if error is not None:
            lines.append(f"{kind} error: {verdict(error)}")
    return "\n".join(lines)


def verdict(error: ErrorStats) -> str:
    if error.ok:
        return f"{error_text(error.rel_l2)}, within {error_text(error.bound)}"
    return f"{error_text(error.rel_l2)}, {error.reason or 'out of bounds'}"
