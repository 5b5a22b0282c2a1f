"""Rows → a table in the terminal (a readable set of columns), CSV, JSON and Markdown (the full set).

CSV and JSON hold plain numbers in base units that stand in the column's name; what is not known is empty
(CSV) or null (JSON), never a made-up number.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from bench import units
from bench.records import Accuracy, ErrorStats, Layer, Measurement
from bench.rows import Row, by_model, label, title

if TYPE_CHECKING:
    from rich.console import RenderableType

FORMATS = ("table", "csv", "json", "md")
WORDS = {"out_of_memory": "out of memory", "timed_out": "timed out"}
STYLES = {"ok": "green", "unsupported": "yellow", "cancelled": "yellow"}
VERDICT_STYLES = {"FASTER": "green", "SLOWER": "red", "SAME": "", "UNCLEAR": "dim"}


_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Column:
    """name as in CSV and JSON; value from a row; text: how Markdown shows it (None: as it is)."""

    name: str
    value: Callable[[Row], Any]
    text: Callable[[Any], str] = str


def _accuracy(row: Row) -> Accuracy:
    return row.measurement.accuracy or Accuracy(images=0, labelled=False)


def _output(row: Row) -> ErrorStats | None:
    return _accuracy(row).output


def _error(field: str) -> Callable[[Row], Any]:
    return lambda row: getattr(_output(row), field, None)


def _s(ns: float | None) -> float | None:
    return None if ns is None else ns * 1e-9


def _seconds(value: float) -> str:
    return units.si(value, "s")


def _exponent(value: float) -> str:
    return f"{value:.1e}"


COLUMNS = (
    Column("model", lambda r: r.title),
    Column("backend", lambda r: r.case.backend),
    Column("precision", lambda r: r.case.precision),
    Column("batch", lambda r: r.case.batch),
    Column("images", lambda r: r.case.images),
    Column("disposition", lambda r: r.measurement.disposition),
    Column("median_s", lambda r: _s(r.median_ns), _seconds),
    Column("low_s", lambda r: _s(r.low_ns), _seconds),
    Column("high_s", lambda r: _s(r.high_ns), _seconds),
    Column("per_image_s", lambda r: _s(r.image_ns), _seconds),
    Column("images_per_s", lambda r: r.images_per_s, units.si),
    Column("reference", lambda r: r.measurement.reference),
    Column("speedup", lambda r: r.speedup, units.times),
    Column("speedup_low", lambda r: r.speedup_low, units.times),
    Column("speedup_high", lambda r: r.speedup_high, units.times),
    Column("verdict", lambda r: r.verdict or None),
    Column("top1", lambda r: _accuracy(r).top1, units.percent),
    Column("top5", lambda r: _accuracy(r).top5, units.percent),
    Column("agreement", lambda r: _accuracy(r).agreement, units.percent),
    Column("rel_l2_error", _error("rel_l2"), _exponent),
    Column("error_bound", _error("bound"), _exponent),
    Column("error_ratio", _error("ratio"), units.times),
    Column("max_abs_error", _error("max_abs"), _exponent),
    Column("first_run_s", lambda r: _s(r.measurement.first_run_ns), _seconds),
    Column("end_to_end_s", lambda r: _s(r.measurement.wall_ns), _seconds),
    Column("dataset_s", lambda r: _s(r.measurement.dataset_ns.get("wall")), _seconds),
    Column("peak_nbytes", lambda r: r.peak_nbytes, units.nbytes),
    Column("samples", lambda r: len(r.measurement.samples_ns) or None),
    Column("stopped_by", lambda r: r.measurement.validity.stop_reason or None),
    Column("warnings", lambda r: "; ".join(r.measurement.validity.warnings) or None),
    Column("reason", lambda r: r.measurement.reason or None),
)
LAYER_COLUMNS = (
    "model", "backend", "precision", "batch", "layer", "nodes", "op_type", "shape", "parameters", "flops",
    "nbytes", "rung", "time_s", "share", "gflops_per_s", "gb_per_s", "clock", "isolated_rel_l2",
    "isolated_ok", "isolated_ratio", "propagated_rel_l2", "propagated_ok",
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
    writer.writerows([["" if item[name] is None else item[name] for name in names] for item in items])
    return out.getvalue()


def to_json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def to_markdown(rows: Sequence[Row]) -> str:
    """A pipe table of every column that has a value somewhere."""
    kept = [c for c in COLUMNS if any(c.value(row) not in (None, "") for row in rows)]
    lines = [[c.name.replace("_", " ") for c in kept], ["---"] * len(kept)]
    for row in rows:
        values = [c.value(row) for c in kept]
        lines.append(["" if v is None else c.text(v) for c, v in zip(kept, values, strict=True)])
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def layer_records(measurements: Sequence[Measurement]) -> list[dict[str, Any]]:
    """One dictionary a layer of every measurement that has layers, by LAYER_COLUMNS."""
    found = []
    for measurement in measurements:
        case = measurement.case
        total = sum(layer.time_ns or 0 for layer in measurement.layers)
        for index, layer in enumerate(measurement.layers):
            time_ns = layer.time_ns
            values = (
                title(case.model), case.backend, case.precision, case.batch, index, " ".join(layer.nodes),
                layer.op_type, "x".join(map(str, layer.shape)), layer.parameters, layer.flops, layer.nbytes,
                layer.rung or None, _s(time_ns), time_ns / total if time_ns and total else None,
                layer.flops / time_ns if time_ns else None, layer.nbytes / time_ns if time_ns else None,
                layer.clock or None, *_verdict(layer.isolated), getattr(layer.isolated, "ratio", None),
                *_verdict(layer.propagated),
            )  # fmt: skip
            found.append(dict(zip(LAYER_COLUMNS, values, strict=True)))
    return found


def _verdict(error: ErrorStats | None) -> tuple[float | None, bool | None]:
    return (None, None) if error is None else (error.rel_l2, error.ok)


# ------------------------------------------------------------------------------------------- the terminal


# Header, least width, flush left; one table a model, all of one width.
_TERMINAL = (
    ("backend", 13, True), ("batch", 5, False), ("result", 9, True), ("time", 8, False), ("±", 5, False),
    ("images/s", 8, False), ("speed-up", 8, False), ("", 7, True), ("top-1", 8, False), ("agree", 8, False),
    ("error", 7, False),
)  # fmt: skip


def terminal(rows: Sequence[Row]) -> RenderableType:
    """The tables for people, one a model, 110 columns wide; why a case has no numbers stands below."""
    from rich.console import Group
    from rich.text import Text

    made: list[RenderableType] = []
    for found in by_model(rows).values():
        made.append(Text(_heading(found), style="bold"))
        made.append(_model_table(found))
    return Group(*made, *(Text(line, style="dim") for line in remarks(rows)))


def _heading(rows: Sequence[Row]) -> str:
    counts = ", ".join(f"{count:,}" for count in sorted({row.case.images for row in rows if row.case.images}))
    references = dict.fromkeys(r.measurement.reference for r in rows if r.speedup is not None)
    against = f", speed-up against {' and '.join(references)}" if references else ""
    return f"{rows[0].title}{f', {counts} images' if counts else ''}{against}"


def _model_table(rows: Sequence[Row]) -> RenderableType:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for name, width, left in _TERMINAL:
        table.add_column(name, justify="left" if left else "right", no_wrap=True, min_width=width)
    for row in rows:
        measurement = row.measurement
        result = Text(_words(measurement), style=STYLES.get(measurement.disposition, "bold red"))
        if measurement.validity.warnings:
            result.append(" !", style="yellow")
        accuracy, output = _accuracy(row), _output(row)
        compared = accuracy.agreement is not None and not row.is_reference
        table.add_row(
            row.contender,
            f"{row.case.batch:,}",
            result,
            units.duration(row.median_ns) if row.median_ns is not None else "",
            _half_width(row),
            units.si(row.images_per_s) if row.images_per_s else "",
            units.times(row.speedup) if row.speedup else "",
            Text(row.verdict.lower(), style=VERDICT_STYLES.get(row.verdict, "")),
            units.percent(accuracy.top1) if accuracy.top1 is not None else "",
            units.percent(accuracy.agreement or 0) if compared else "",
            _exponent(output.rel_l2) if output is not None else "",
        )
    return table


def remarks(rows: Sequence[Row]) -> list[str]:
    """What the table has no room for: why cases have no numbers, and warnings. Cases of a model that share a
    sentence share a line; warnings that differ in their figures alone are one, with the largest."""
    grouped: dict[tuple[str, str], list[tuple[str, Row]]] = {}
    for row in rows:
        m = row.measurement
        texts = [f"{_words(m)}: {m.reason}" if m.reason else _words(m)] if m.disposition != "ok" else []
        for text in (*texts, *(f"! {warning}" for warning in m.validity.warnings)):
            alike = _NUMBER.sub("#", text) if text.startswith("!") else text
            grouped.setdefault((row.title, alike), []).append((text, row))
    lines = []
    known = {row.case.batch for row in rows}
    for (model, _), found in grouped.items():
        where: dict[str, list[int]] = {}
        for _, row in found:
            where.setdefault(row.contender, []).append(row.case.batch)
        cases = ", ".join(f"{who} at batch {units.spans(batches, known)}" for who, batches in where.items())
        text = max((text for text, _ in found), key=lambda text: [float(n) for n in _NUMBER.findall(text)])
        lines.append(f"{model}, {cases}: {text}")
    return lines


def layers(measurements: Sequence[Measurement]) -> RenderableType:
    """One table a case: each layer's time with its share, rates and errors."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    made: list[RenderableType] = []
    for measurement in measurements:
        if not measurement.layers:
            continue
        case = measurement.case
        heading = f"{title(case.model)} on {label(case.backend, case.precision)}, batch {case.batch:,}"
        table = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for name in ("layer", "op", "shape", "rung"):
            table.add_column(name, overflow="ellipsis", no_wrap=True, max_width=26)
        for name in ("time", "share", "GFLOP/s", "GB/s", "isolated", "propagated"):
            table.add_column(name, justify="right", no_wrap=True)
        total = sum(layer.time_ns or 0 for layer in measurement.layers)
        for layer in measurement.layers:
            table.add_row(*_layer(layer, total), _error_text(layer.isolated), _error_text(layer.propagated))
        made.append(table)
    return Group(*made) if made else Text("No case has its layers measured.")


def _layer(layer: Layer, total: float) -> tuple[str, ...]:
    time_ns = layer.time_ns
    names = (
        layer.nodes[0]
        if len(layer.nodes) == 1
        else f"{layer.nodes[0]} … {layer.nodes[-1]}"
        if layer.nodes
        else ""
    )
    return (
        names,
        layer.op_type,
        "×".join(map(str, layer.shape)),
        layer.rung,
        units.duration(time_ns) if time_ns is not None else "",
        units.percent(time_ns / total, 1) if time_ns and total else "",
        units.digits(layer.flops / time_ns) if time_ns and layer.flops else "",
        units.digits(layer.nbytes / time_ns) if time_ns and layer.nbytes else "",
    )


def _error_text(error: ErrorStats | None) -> RenderableType:
    from rich.text import Text

    if error is None:
        return ""
    return Text(_exponent(error.rel_l2), style="" if error.ok else "bold red")


def _words(measurement: Measurement) -> str:
    return WORDS.get(measurement.disposition, measurement.disposition)


def _half_width(row: Row) -> str:
    """The further end of the interval, in per cent of the median."""
    if not row.median_ns or row.low_ns is None or row.high_ns is None:
        return ""
    far = max(row.high_ns - row.median_ns, row.median_ns - row.low_ns) / row.median_ns
    return f"{far * 100:.1f} %"
