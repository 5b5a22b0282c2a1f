"""Rows → tables for people in the terminal: a readable set of columns, reasons and warnings below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.results import doubt
from bench.results.records import ErrorStats, Layer, Measurement
from bench.results.rows import Row, by_model, label, title
from bench.show.tables import accuracy_of, exponent, layer_name, words
from bench.words import units

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.text import Text

STYLES = {"ok": "green", "unsupported": "yellow", "cancelled": "yellow"}
VERDICT_STYLES = {"FASTER": "green", "SLOWER": "red", "SAME": "", "UNCLEAR": "dim"}

# Header, least width, flush left; one table a model, all of one width.
_TERMINAL = (
    ("backend", 13, True), ("batch", 5, False), ("result", 9, True), ("time", 8, False), ("±", 5, False),
    ("images/s", 8, False), ("speed-up", 8, False), ("", 7, True), ("top-1", 8, False), ("agree", 8, False),
    ("error", 7, False),
)  # fmt: skip


# What a narrow terminal does without, first to last; no figure is ever cut in half.
_SPARED = ("error", "±", "images/s", "agree", "top-1", "")


def terminal(rows: Sequence[Row]) -> RenderableType:
    """The tables for people, one a model, up to 112 columns wide, and with fewer columns where the terminal
    is narrower; why a case has no numbers stands below."""
    from rich.console import Group
    from rich.text import Text

    made: list[RenderableType] = []
    for found in by_model(rows).values():
        made.append(Text(_heading(found), style="bold"))
        made.append(_ModelTable(found))
    told = [*remarks(rows), *([doubt.MEANING] if any(row.doubts for row in rows) else [])]
    return Group(*made, *(Text(line, style="dim") for line in told))


class _ModelTable:
    """One model's table, with the columns that the console has room for."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._cells = [_cells(row, any(row.doubts for row in rows)) for row in rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich import box
        from rich.table import Table

        widths = [
            max(least, *(len(cells[index]) for cells in self._cells))
            for index, (_, least, _) in enumerate(_TERMINAL)
        ]
        kept = list(range(len(_TERMINAL)))  # a column takes a space and a divider beside its width
        for name in _SPARED:
            if sum(widths[index] + 2 for index in kept) - 1 > options.max_width:
                kept = [index for index in kept if _TERMINAL[index][0] != name]
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        for index in kept:
            name, least, left = _TERMINAL[index]
            table.add_column(name, justify="left" if left else "right", no_wrap=True, min_width=least)
        for cells in self._cells:
            table.add_row(*(cells[index] for index in kept))
        yield table


def _heading(rows: Sequence[Row]) -> str:
    counts = ", ".join(f"{count:,}" for count in sorted({row.case.images for row in rows if row.case.images}))
    references = dict.fromkeys(r.measurement.reference for r in rows if r.speedup is not None)
    against = f"speed-up against {' and '.join(references)}" if references else ""
    several = units.instances(row.measurement.instances for row in rows if row.measurement.samples_ns)
    images = f"{counts} images" if counts else ""
    return ", ".join(filter(None, (rows[0].title, images, against, several)))


def _cells(row: Row, marks: bool) -> list[str | Text]:
    """A row's cells, in the order of _TERMINAL. marks: there are marks in the table, which take room behind
    every figure, lest those without one stand askew."""
    from rich.text import Text

    measurement = row.measurement
    result = Text(words(measurement), style=STYLES.get(measurement.disposition, "bold red"))
    if row.doubts:
        result.append(doubt.MARK, style="yellow")
    accuracy = accuracy_of(row)
    compared = accuracy.agreement is not None and not row.is_reference

    def figure(text: str, doubts: Sequence[str]) -> Text:
        made = Text(text)
        if marks and text:
            made.append(doubt.MARK if doubts else " " * len(doubt.MARK), style="yellow")
        return made

    return [
        row.contender,
        f"{row.case.batch:,}",
        result,
        figure(units.duration(row.median_ns) if row.median_ns is not None else "", row.own_doubts),
        _half_width(row),
        figure(units.si(row.images_per_s) if row.images_per_s else "", row.own_doubts),
        figure(units.times(row.speedup) if row.speedup else "", row.speedup_doubts),
        Text(row.verdict.lower(), style=VERDICT_STYLES.get(row.verdict, "")),
        units.percent(accuracy.top1) if accuracy.top1 is not None else "",
        units.percent(accuracy.agreement or 0) if compared else "",
        exponent(accuracy.output.rel_l2) if accuracy.output is not None else "",
    ]


def remarks(rows: Sequence[Row]) -> list[str]:
    """What the table has no room for: why cases have no numbers, and doubts, a reference's with the cases
    that were compared to it where it has no row of its own. Cases of a model that share a sentence share a
    line; doubts that differ in their figures alone are one, with the largest."""
    grouped: dict[tuple[str, str], list[tuple[str, Row]]] = {}
    shown = {row.case for row in rows}
    for row in rows:
        m = row.measurement
        texts = [f"{words(m)}: {m.reason}" if m.reason else words(m)] if m.disposition != "ok" else []
        told = row.own_doubts if row.against is None or row.against.case in shown else row.doubts
        for text in (*texts, *(f"! {warning}" for warning in told)):
            alike = doubt.alike(text) if text.startswith("!") else text
            grouped.setdefault((row.title, alike), []).append((text, row))
    lines = []
    known = {row.case.batch for row in rows}
    for (model, _), found in grouped.items():
        where: dict[str, list[int]] = {}
        for _, row in found:
            where.setdefault(row.contender, []).append(row.case.batch)
        cases = ", ".join(f"{who} at batch {units.spans(batches, known)}" for who, batches in where.items())
        text = doubt.worst(text for text, _ in found)
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
        if doubts := doubt.own(measurement):
            heading += f"{doubt.MARK} {'; '.join(doubts)}"
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
    return (
        layer_name(layer),
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
    return Text(exponent(error.rel_l2), style="" if error.ok else "bold red")


def _half_width(row: Row) -> str:
    """The further end of the interval, in per cent of the median."""
    if not row.median_ns or row.low_ns is None or row.high_ns is None:
        return ""
    far = max(row.high_ns - row.median_ns, row.median_ns - row.low_ns) / row.median_ns
    return units.half_width(far)
