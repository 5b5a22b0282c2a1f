"""The columns of a comparison and of its layers, each defined once: CSV and JSON have them all, the others a
choice (bench.views.tables.terminal_tables, bench.views.reports.comparison_report, gui.pages.compare)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bench.results import doubt
from bench.results.records import Accuracy, ErrorStats, Layer, Measurement
from bench.results.rows import EndToEndRow, Row, title
from bench.views.tables.table import Column, Table, pick
from bench.words import orders, units

WORDS = {"out_of_memory": "out of memory", "timed_out": "timed out", "untimed": "right, no times"}


def words(measurement: Measurement) -> str:
    """How a case ended, as one reads it."""
    return WORDS.get(measurement.disposition, measurement.disposition)


def accuracy_of(row: Row) -> Accuracy:
    return row.measurement.accuracy or Accuracy(images=0, labelled=False)


def _error(field: str) -> Callable[[Row], Any]:
    return lambda row: getattr(accuracy_of(row).output, field, None)


def _end(name: str, place: int) -> Column[Row]:
    """An end of the 95 % interval of top-1 or top-5."""

    def end(row: Row) -> float | None:
        found = row.accuracy_interval(name)
        return None if found is None else found[place]

    return Column(f"{name}_{('low', 'high')[place]}", end, units.percent)


def _own(row: Row) -> tuple[str, ...]:
    return row.own_doubts


def _order(row: Row) -> tuple[str, ...]:
    """What speaks against an accuracy."""
    return tuple(filter(None, [accuracy_of(row).hint]))


def _ratio(row: Row) -> tuple[str, ...]:
    return (*row.speedup_doubts, *([row.undecided] if row.undecided else []))


def _flow(get: Callable[[EndToEndRow], Any]) -> Callable[[Row], Any]:
    """Of what was measured from end to end."""
    return lambda row: None if row.end_to_end is None else get(row.end_to_end)


def _flow_words(get: Callable[[EndToEndRow], str]) -> Callable[[Row], str]:
    return lambda row: "" if row.end_to_end is None else get(row.end_to_end)


def _flow_doubts(row: Row) -> tuple[str, ...]:
    return row.end_to_end.doubts if row.end_to_end is not None else ()


def _s(ns: float | None) -> float | None:
    return None if ns is None else ns * 1e-9


seconds = partial(units.si, unit="s")
_word = partial(Column[Row], left=True)

COLUMNS: tuple[Column[Row], ...] = (
    _word("model", lambda r: r.title),
    _word("backend", lambda r: r.case.backend),
    _word("precision", lambda r: r.case.precision),
    Column("batch", lambda r: r.case.batch),
    Column("images", lambda r: r.case.images),
    _word(
        "disposition",
        lambda r: r.measurement.disposition,
        lambda name: WORDS.get(name, name),
        lambda r: r.doubts,
        title="result",
    ),
    Column(
        "doubtful",
        lambda r: bool(r.doubts),
        lambda doubtful: doubt.MARK.strip() if doubtful else "",
        holds=bool,
    ),
    _word("warnings", lambda r: "; ".join(r.doubts) or None),
    Column("median_s", lambda r: _s(r.median_ns), seconds, _own, "median"),
    Column("low_s", lambda r: _s(r.low_ns), seconds),
    Column("high_s", lambda r: _s(r.high_ns), seconds),
    Column("per_image_s", lambda r: _s(r.image_ns), seconds, _own, "per image"),
    Column("images_per_s", lambda r: r.images_per_s, units.si, _own, "images/s"),
    _word("reference", lambda r: r.measurement.reference),
    Column("speedup", lambda r: r.speedup, units.times, _ratio, "speed-up",
           "Whether it is faster than its reference: that one's time over its own, round by round",
           cell=lambda r: orders.cell(r.verdict, r.speedup)),
    Column("speedup_low", lambda r: r.speedup_low, units.times),
    Column("speedup_high", lambda r: r.speedup_high, units.times),
    _word("verdict", lambda r: r.verdict or None, lambda verdict: orders.SHORT.get(verdict, ""), _ratio),
    _word("undecided", lambda r: r.undecided or None, title="why not decided"),
    Column("top1", lambda r: accuracy_of(r).top1, units.percent, _order, "top-1"),
    Column("top5", lambda r: accuracy_of(r).top5, units.percent, _order, "top-5"),
    Column("agreement", lambda r: accuracy_of(r).agreement, units.percent),
    Column("rel_l2_error", _error("rel_l2"), units.exponent),
    Column("error_bound", _error("bound"), units.exponent),
    Column("error_ratio", _error("ratio"), units.times),
    Column("max_abs_error", _error("max_abs"), units.exponent),
    Column("first_run_s", lambda r: _s(r.measurement.first_run_ns), seconds, _own, "first run"),
    Column("host_to_host_s", lambda r: _s(r.measurement.wall_ns), seconds, _own, "host to host"),
    Column("dataset_s", lambda r: _s(r.measurement.dataset_ns.get("wall")), seconds, _own, "dataset"),
    Column("peak_nbytes", lambda r: r.peak_nbytes, units.nbytes, title="peak"),
    Column("samples", lambda r: len(r.measurement.samples_ns) or None),
    _word("stopped_by", lambda r: r.measurement.validity.stop_reason or None),
    _word("reason", lambda r: r.measurement.reason or None),
    *(_end(name, place) for name in ("top1", "top5") for place in (0, 1)),
    _word("no_accuracy", lambda r: accuracy_of(r).refused or None),
    Column("end_to_end_batch_s", _flow(lambda f: f.ns * 1e-9), seconds, _flow_doubts,
           "end to end: a batch"),
    Column("end_to_end_batch_low_s", _flow(lambda f: _s(f.low_ns)), seconds),
    Column("end_to_end_batch_high_s", _flow(lambda f: _s(f.high_ns)), seconds),
    Column("end_to_end_images_per_s", _flow(lambda f: f.images_per_s), units.si, _flow_doubts,
           "end to end: images/s"),
    Column("end_to_end_speedup", _flow(lambda f: f.speedup), units.times,
           lambda row: row.end_to_end.speedup_doubts if row.end_to_end is not None else (),
           "end to end: speed-up", cell=_flow_words(lambda f: orders.cell(f.verdict, f.speedup))),
    Column("end_to_end_speedup_low", _flow(lambda f: f.speedup_low), units.times),
    Column("end_to_end_speedup_high", _flow(lambda f: f.speedup_high), units.times),
    _word("end_to_end_verdict", _flow(lambda f: f.verdict or None),
          lambda verdict: orders.SHORT.get(verdict, ""), title="end to end: verdict"),
    Column("end_to_end_bus_share", _flow(lambda f: f.bus_share), lambda share: units.percent(share, 0),
           title="end to end: of the bus"),
    Column("end_to_end_in_flight", _flow(lambda f: f.record.lanes), title="end to end: in flight"),
    _word("end_to_end_carries", _flow(lambda f: f.record.carries), title="end to end: carried as"),
    Column("end_to_end_top_k", _flow(lambda f: f.record.top_k or None), title="end to end: best classes"),
    Column("end_to_end_checked", _flow(lambda f: f.record.checked), title="end to end: batches checked"),
    _word("no_end_to_end", lambda r: getattr(r.measurement.end_to_end, "refused", None) or None),
)  # fmt: skip
# A backend with its precision: who is compared, where people read it.
CONTENDER: Column[Row] = _word("contender", title="backend")
# Of all but a reference, which agrees with itself.
AGREED: Column[Row] = Column(
    "agreement", lambda r: None if r.is_reference else accuracy_of(r).agreement, units.percent
)


def table(rows: Sequence[Row]) -> Table[Row]:
    return Table(COLUMNS, rows)


def _interval(name: str, low: str, high: str) -> Column[Row]:
    """A figure with its interval behind it."""
    value, *ends = pick(COLUMNS, name, low, high)

    def cell(row: Row) -> str:
        bounds = [end.words(row) for end in ends]
        return f"{value.shown(row)} ({' to '.join(bounds)})" if all(bounds) else value.shown(row)

    return replace(value, cell=cell, doubts=None, title=f"{value.heading} (95 % interval)")


_KNOWN = {column.name: column for column in COLUMNS}
_READABLE = pick(
    COLUMNS,
    "model",
    "batch",
    CONTENDER,
    "images",
    "disposition",
    _interval("median_s", "low_s", "high_s"),
    "images_per_s",
    replace(
        _KNOWN["speedup"],
        cell=lambda r: orders.cell(r.verdict, r.speedup, r.speedup_low, r.speedup_high),
        title="speed-up (95 % interval)",
    ),
    _interval("top1", "top1_low", "top1_high"),
    _interval("top5", "top5_low", "top5_high"),
    AGREED,
    "rel_l2_error",
    "first_run_s",
    "peak_nbytes",
    rel_l2_error="error vs float64",
    peak_nbytes="peak memory",
)


def readable(rows: Sequence[Row], *further: Column[Row]) -> Table[Row]:
    """What people read of rows, on paper; which model and how many images, where they differ. further:
    columns that stand behind the error."""
    alike = {
        name
        for name, values in (
            ("images", {row.case.images for row in rows}),
            ("model", {row.case.model for row in rows}),
        )
        if len(values) == 1
    }
    at = next(place for place, column in enumerate(_READABLE) if column.name == "rel_l2_error") + 1
    columns = (*_READABLE[:at], *further, *_READABLE[at:])
    return Table([column for column in columns if column.name not in alike], rows)


# What people read of a case from end to end: a table of its own, for it is a clock of its own.
END_TO_END = pick(
    COLUMNS,
    "model",
    "batch",
    CONTENDER,
    _interval("end_to_end_batch_s", "end_to_end_batch_low_s", "end_to_end_batch_high_s"),
    "end_to_end_images_per_s",
    replace(
        _KNOWN["end_to_end_speedup"],
        cell=_flow_words(lambda f: orders.cell(f.verdict, f.speedup, f.speedup_low, f.speedup_high)),
        title="end to end: speed-up (95 % interval)",
    ),
    "end_to_end_bus_share",
    "end_to_end_in_flight",
    "end_to_end_carries",
    "end_to_end_checked",
)


_NARROW = ("end_to_end_carries", "end_to_end_checked")  # has no place for them


def end_to_end(rows: Sequence[Row], narrow: bool = False) -> Table[Row] | None:
    """Of one model; None where nothing was measured so. narrow: without intervals."""
    found = [row for row in rows if row.end_to_end is not None]
    if not found:
        return None
    columns = END_TO_END[1:]
    if narrow:
        names = [column.name for column in columns if column.name not in ("contender", *_NARROW)]
        columns = (CONTENDER, *pick(COLUMNS, *names))
    shown = [replace(it, title=it.heading.removeprefix("end to end: ")) for it in columns]
    return Table([column for column in shown if any(column.shown(row) for row in found)], found)


# ---------------------------------------------------------------------------------------------------- layers


@dataclass(frozen=True)
class LayerLine:
    """A layer of a measurement. total_ns: of all of its layers."""

    measurement: Measurement
    place: int
    layer: Layer
    total_ns: float

    @property
    def share(self) -> float | None:
        time_ns = self.layer.time_ns
        return time_ns / self.total_ns if time_ns and self.total_ns else None

    def per_ns(self, amount: int) -> float | None:
        return amount / self.layer.time_ns if self.layer.time_ns else None


def impossible(row: Any) -> tuple[str, ...]:
    """What speaks against the rate of bytes of a row that has a `layer`."""
    return (doubt.IMPOSSIBLE,) if row.layer.beyond == "impossible" else ()


def _error_columns(kind: str, how: str) -> tuple[Column[Any], ...]:
    """Of a layer's error of one kind ("isolated", "propagated"), for rows that have a `layer`."""

    def part(field: str) -> Callable[[Any], Any]:
        return lambda row: getattr(getattr(row.layer, kind), field, None)

    return (
        Column(
            f"{kind}_rel_l2",
            part("rel_l2"),
            units.exponent,
            title=f"{kind} error",
            tip=f"relative L2 error, {how}",
        ),
        Column(
            f"{kind}_ok",
            part("ok"),
            lambda good: "✓" if good else "✕",
            title="ok",
            tip="within the bound",
            holds=bool,
        ),
        Column(
            f"{kind}_ratio",
            part("ratio"),
            units.times,
            title="× reference's",
            tip="error over the reference's own error",
        ),
    )


_layer_word = partial(Column[LayerLine], left=True)
ERRORS = {
    kind: _error_columns(kind, how)
    for kind, how in (("isolated", "fed right inputs"), ("propagated", "fed what it computed before"))
}
LAYER_COLUMNS: tuple[Column[LayerLine], ...] = (
    _layer_word("model", lambda r: title(r.measurement.case.model)),
    _layer_word("backend", lambda r: r.measurement.case.backend),
    _layer_word("precision", lambda r: r.measurement.case.precision),
    Column("batch", lambda r: r.measurement.case.batch),
    Column("doubtful", lambda r: bool(doubt.own(r.measurement)), holds=bool),
    Column("layer", lambda r: r.place),
    _layer_word("nodes", lambda r: " ".join(r.layer.nodes), cell=lambda r: layer_name(r.layer),
                title="layer"),
    _layer_word("op_type", lambda r: r.layer.op_type, title="op"),
    _layer_word("shape", lambda r: r.layer.shape, lambda shape: "×".join(map(str, shape))),
    Column("parameters", lambda r: r.layer.parameters),
    Column("flops", lambda r: r.layer.flops),
    Column("nbytes", lambda r: r.layer.nbytes),
    _layer_word("rung", lambda r: r.layer.rung or None),
    _layer_word("chosen", lambda r: r.layer.chosen or None),
    _layer_word("computed_in", lambda r: r.layer.precision or None, title="in",
                tip="the precision of the layer's kernel, which may be finer than was asked for"),
    Column("time_s", lambda r: _s(r.layer.time_ns), seconds, title="time"),
    Column("share", lambda r: r.share, lambda share: units.percent(share, 1)),
    Column("gflops_per_s", lambda r: r.per_ns(r.layer.flops), lambda v: units.digits(v) if v else "",
           title="GFLOP/s"),
    Column("gb_per_s", lambda r: r.per_ns(r.layer.nbytes) or None, units.digits, impossible, title="GB/s",
           tip="of what it reads and writes as this backend keeps it"),
    _layer_word("beyond_memory", lambda r: r.layer.beyond or None),
    _layer_word("clock", lambda r: r.layer.clock or None),
    *ERRORS["isolated"],
    *ERRORS["propagated"][:2],
)  # fmt: skip


READABLE_LAYERS = pick(
    LAYER_COLUMNS,
    *("model", "backend", "batch", "nodes", "op_type", "shape", "rung", "computed_in", "time_s", "share"),
    *("gflops_per_s", "gb_per_s", "isolated_rel_l2", "isolated_ok", "propagated_rel_l2", "propagated_ok"),
)


def layer_table(measurements: Sequence[Measurement]) -> Table[LayerLine]:
    """Every layer of every measurement that has layers."""
    return Table(LAYER_COLUMNS, [line for measurement in measurements for line in _lines(measurement)])


def _lines(measurement: Measurement) -> Iterator[LayerLine]:
    total = sum(layer.time_ns or 0 for layer in measurement.layers)
    for place, layer in enumerate(measurement.layers):
        yield LayerLine(measurement, place, layer, total)


def layer_name(layer: Layer) -> str:
    """The node that a layer covers, or the first and the last of several; without nodes its tensor."""
    nodes = layer.nodes or (layer.output,)
    return nodes[0] if len(nodes) == 1 else f"{nodes[0]} … {nodes[-1]}"


def failing(kind: str) -> Callable[[LayerLine], str]:
    """The style of an error that is out of bounds."""

    def style(row: LayerLine) -> str:
        error: ErrorStats | None = getattr(row.layer, kind)
        return "" if error is None or error.ok else "bold red"

    return style
