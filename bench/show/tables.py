"""Rows → CSV, JSON and Markdown, every column; bench.show.terminal_tables has the readable set for the
terminal.

CSV and JSON hold plain numbers in base units that stand in the column's name; what is not known is empty
(CSV) or null (JSON), never a made-up number. Whether a case's figures are to be doubted stands before them
("doubtful"), and why ("warnings": its own and those of the reference it is compared with); Markdown has a
mark behind each figure that is (bench.results.doubt).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bench.results import doubt
from bench.results.records import Accuracy, ErrorStats, Layer, Measurement
from bench.results.rows import Row, title
from bench.words import plain, units

FORMATS = ("table", "csv", "json", "md")
WORDS = {"out_of_memory": "out of memory", "timed_out": "timed out"}


@dataclass(frozen=True)
class Column:
    """name as in CSV and JSON; value from a row; text: how Markdown shows it; doubts: what speaks against
    the figure, which is then marked where people read it."""

    name: str
    value: Callable[[Row], Any]
    text: Callable[[Any], str] = str
    doubts: Callable[[Row], tuple[str, ...]] = lambda row: ()

    def shown(self, row: Row) -> str:
        value = self.value(row)
        return "" if value is None else doubt.marked(self.text(value), self.doubts(row))


def words(measurement: Measurement) -> str:
    """How a case ended, as one reads it."""
    return WORDS.get(measurement.disposition, measurement.disposition)


def accuracy_of(row: Row) -> Accuracy:
    return row.measurement.accuracy or Accuracy(images=0, labelled=False)


def _output(row: Row) -> ErrorStats | None:
    return accuracy_of(row).output


def _error(field: str) -> Callable[[Row], Any]:
    return lambda row: getattr(_output(row), field, None)


def _own(row: Row) -> tuple[str, ...]:
    return row.own_doubts


def _all(row: Row) -> tuple[str, ...]:
    return row.doubts


def _ratio(row: Row) -> tuple[str, ...]:
    return row.speedup_doubts


def _s(ns: float | None) -> float | None:
    return None if ns is None else ns * 1e-9


def _seconds(value: float) -> str:
    return units.si(value, "s")


def exponent(value: float) -> str:
    return f"{value:.1e}"


COLUMNS = (
    Column("model", lambda r: r.title),
    Column("backend", lambda r: r.case.backend),
    Column("precision", lambda r: r.case.precision),
    Column("batch", lambda r: r.case.batch),
    Column("images", lambda r: r.case.images),
    Column("disposition", lambda r: r.measurement.disposition, doubts=_all),
    Column("doubtful", lambda r: bool(r.doubts), lambda doubtful: doubt.MARK.strip() if doubtful else ""),
    Column("warnings", lambda r: "; ".join(r.doubts) or None),
    Column("median_s", lambda r: _s(r.median_ns), _seconds, _own),
    Column("low_s", lambda r: _s(r.low_ns), _seconds),
    Column("high_s", lambda r: _s(r.high_ns), _seconds),
    Column("per_image_s", lambda r: _s(r.image_ns), _seconds, _own),
    Column("images_per_s", lambda r: r.images_per_s, units.si, _own),
    Column("reference", lambda r: r.measurement.reference),
    Column("speedup", lambda r: r.speedup, units.times, _ratio),
    Column("speedup_low", lambda r: r.speedup_low, units.times),
    Column("speedup_high", lambda r: r.speedup_high, units.times),
    Column("verdict", lambda r: r.verdict or None, doubts=_ratio),
    Column("top1", lambda r: accuracy_of(r).top1, units.percent),
    Column("top5", lambda r: accuracy_of(r).top5, units.percent),
    Column("agreement", lambda r: accuracy_of(r).agreement, units.percent),
    Column("rel_l2_error", _error("rel_l2"), exponent),
    Column("error_bound", _error("bound"), exponent),
    Column("error_ratio", _error("ratio"), units.times),
    Column("max_abs_error", _error("max_abs"), exponent),
    Column("first_run_s", lambda r: _s(r.measurement.first_run_ns), _seconds, _own),
    Column("end_to_end_s", lambda r: _s(r.measurement.wall_ns), _seconds, _own),
    Column("dataset_s", lambda r: _s(r.measurement.dataset_ns.get("wall")), _seconds, _own),
    Column("peak_nbytes", lambda r: r.peak_nbytes, units.nbytes),
    Column("samples", lambda r: len(r.measurement.samples_ns) or None),
    Column("stopped_by", lambda r: r.measurement.validity.stop_reason or None),
    Column("reason", lambda r: r.measurement.reason or None),
)
LAYER_COLUMNS = (
    "model", "backend", "precision", "batch", "doubtful", "layer", "nodes", "op_type", "shape", "parameters",
    "flops", "nbytes", "rung", "chosen", "time_s", "share", "gflops_per_s", "gb_per_s", "clock",
    "isolated_rel_l2", "isolated_ok", "isolated_ratio", "propagated_rel_l2", "propagated_ok",
)  # fmt: skip


def records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One dictionary a row, by column name."""
    return [{column.name: column.value(row) for column in COLUMNS} for row in rows]


def to_csv(items: Sequence[dict[str, Any]], names: Sequence[str] = ()) -> str:
    """Comma-separated with a header line; `names` where there may be no item to tell them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = names or ([*items[0]] if items else [column.name for column in COLUMNS])
    writer.writerow(names)
    writer.writerows(
        [["" if item[name] is None else plain.csv(item[name]) for name in names] for item in items]
    )
    return out.getvalue()


def to_json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def to_markdown(rows: Sequence[Row]) -> str:
    """A pipe table of every column that has a value somewhere."""
    kept = [c for c in COLUMNS if any(c.shown(row) for row in rows)]
    lines = [[c.name.replace("_", " ") for c in kept], ["---"] * len(kept)]
    return pipes([*lines, *([c.shown(row) for c in kept] for row in rows)])


def pipes(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells, the header and the rule below it among them, as a Markdown table."""
    return "".join("| " + " | ".join(plain.cell(cell) for cell in line) + " |\n" for line in lines)


def text(name: str, row: Row) -> str:
    """What Markdown shows in the column of that name, "" for what is not known."""
    return next(column for column in COLUMNS if column.name == name).shown(row)


def layer_records(measurements: Sequence[Measurement]) -> list[dict[str, Any]]:
    """One dictionary a layer of every measurement that has layers, by LAYER_COLUMNS."""
    found = []
    for measurement in measurements:
        case = measurement.case
        total = sum(layer.time_ns or 0 for layer in measurement.layers)
        doubtful = bool(doubt.own(measurement))
        for index, layer in enumerate(measurement.layers):
            time_ns = layer.time_ns
            values = (
                title(case.model), case.backend, case.precision, case.batch, doubtful, index,
                " ".join(layer.nodes), layer.op_type, "x".join(map(str, layer.shape)), layer.parameters,
                layer.flops, layer.nbytes, layer.rung or None, layer.chosen or None, _s(time_ns),
                time_ns / total if time_ns and total else None,
                layer.flops / time_ns if time_ns else None, layer.nbytes / time_ns if time_ns else None,
                layer.clock or None, *_verdict(layer.isolated), getattr(layer.isolated, "ratio", None),
                *_verdict(layer.propagated),
            )  # fmt: skip
            found.append(dict(zip(LAYER_COLUMNS, values, strict=True)))
    return found


def layer_name(layer: Layer) -> str:
    """The node that a layer covers, or the first and the last of several; without nodes its tensor."""
    nodes = layer.nodes or (layer.output,)
    return nodes[0] if len(nodes) == 1 else f"{nodes[0]} … {nodes[-1]}"


def _verdict(error: ErrorStats | None) -> tuple[float | None, bool | None]:
    return (None, None) if error is None else (error.rel_l2, error.ok)
