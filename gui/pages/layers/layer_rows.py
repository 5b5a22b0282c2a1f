"""A model's layers on several contenders side by side, from records alone: rows, columns and a graph.

A contender is a measurement: a backend at a precision. One is in focus: shares, rates, kernels and errors are
its; times are shown of all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bench.results import doubt
from bench.results.records import ErrorStats, Layer, Measurement
from bench.results.rows import label
from bench.show import tables
from bench.words import units


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


@dataclass(frozen=True)
class LayerColumn:
    """heading: as shown; name: as in CSV, with the unit; value: what is sorted and copied; text: as shown."""

    heading: str
    name: str
    value: Callable[[LayerRow], Any]
    text: Callable[[Any], str] = str
    tip: str = ""


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


def columns(measurements: Sequence[Measurement], focus: Measurement) -> list[LayerColumn]:
    """What the layer is, its time on each contender, then figures of the one in focus."""
    who = contender(focus)
    own = doubt.own(focus)
    reference = next((m for m in measurements if m.case.backend == focus.reference and m is not focus), None)
    held = (*own, *(doubt.of(contender(reference), doubt.own(reference)) if reference else ()))

    def marked(text: Callable[[Any], str], doubts: tuple[str, ...] = own) -> Callable[[Any], str]:
        return lambda value: doubt.marked(text(value), doubts)

    return [
        LayerColumn("#", "place", lambda r: r.place, str, "in the order they run"),
        LayerColumn("layer", "layer", lambda r: r.name or None, str, "ONNX nodes that run as one step"),
        LayerColumn("op", "op_type", lambda r: r.layer.op_type),
        LayerColumn("output shape", "shape", lambda r: r.layer.shape or None, shape_text),
        *(_time_column(contender(m), doubt.own(m)) for m in measurements),
        LayerColumn(
            "share", "share", lambda r: r.share, marked(lambda v: units.percent(v, 1)), f"of {who}'s time"
        ),
        LayerColumn(
            "speed-up",
            "speedup",
            lambda r: r.speedup,
            marked(units.times, held),
            doubt.told("the reference's time over its own", held),
        ),
        LayerColumn(
            "GFLOP/s", "gflops_per_s", lambda r: _giga(r.rate(r.layer.flops)), marked(units.digits), who
        ),
        LayerColumn("GB/s", "gb_per_s", lambda r: _giga(r.rate(r.layer.nbytes)), marked(units.digits), who),
        LayerColumn("kernel", "rung", lambda r: kernel(r.layer), str, f"{who}; timed: the fastest here"),
        *_error_columns("isolated", "fed right inputs"),
        *_error_columns("propagated", "fed what it computed before"),
        LayerColumn("parameters", "parameters", lambda r: r.layer.parameters or None, "{:,}".format),
        LayerColumn("FLOPs", "flops", lambda r: r.layer.flops or None, lambda v: units.si(v)),
        LayerColumn(
            "bytes", "nbytes", lambda r: r.layer.nbytes or None, units.nbytes, "read and written, at least"
        ),
    ]


def kernel(layer: Layer) -> str | None:
    """The rung, with what chose it where that is not the ladder's order."""
    told = f" ({layer.chosen})" if layer.chosen in ("timed", "named") else ""
    return f"{layer.rung}{told}" if layer.rung else None


def _time_column(name: str, doubts: tuple[str, ...]) -> LayerColumn:
    """Of one measurement, whose doubts are its layers' too."""
    return LayerColumn(
        name,
        f"{name} time_s",
        lambda r: None if name not in r.times_ns else r.times_ns[name] * 1e-9,
        lambda v: doubt.marked(units.si(v, "s"), doubts),
        doubt.told(f"time of the layer on {name}", doubts),
    )


def _error_columns(kind: str, how: str) -> list[LayerColumn]:
    def part(field: str) -> Callable[[LayerRow], Any]:
        return lambda row: getattr(getattr(row.layer, kind), field, None)

    return [
        LayerColumn(
            f"{kind} error", f"{kind}_rel_l2", part("rel_l2"), error_text, f"relative L2 error, {how}"
        ),
        LayerColumn("ok", f"{kind}_ok", part("ok"), lambda v: "✓" if v else "✕", "within the bound"),
        LayerColumn(
            "× reference's",
            f"{kind}_ratio",
            part("ratio"),
            units.times,
            "error over the reference's own error",
        ),
    ]


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
    for kind, error in (("isolated", layer.isolated), ("propagated", layer.propagated)):
        if error is not None:
            lines.append(f"{kind} error: {verdict(error)}")
    return "\n".join(lines)


def verdict(error: ErrorStats) -> str:
    if error.ok:
        return f"{error_text(error.rel_l2)}, within {error_text(error.bound)}"
    return f"{error_text(error.rel_l2)}, {error.reason or 'out of bounds'}"


def to_csv(rows: Sequence[LayerRow], columns: Sequence[LayerColumn]) -> str:
    """Plain numbers in the units that the names tell; what is not known is empty."""
    items = [
        {c.name: "x".join(map(str, v)) if isinstance(v := c.value(r), tuple) else v for c in columns}
        for r in rows
    ]
    return tables.to_csv(items, [column.name for column in columns])


def to_markdown(rows: Sequence[LayerRow], columns: Sequence[LayerColumn]) -> str:
    lines = [[c.heading for c in columns], ["---"] * len(columns)]
    lines += [["" if (v := c.value(r)) is None else c.text(v) for c in columns] for r in rows]
    return "".join("| " + " | ".join(text.replace("|", "\\|") for text in line) + " |\n" for line in lines)
