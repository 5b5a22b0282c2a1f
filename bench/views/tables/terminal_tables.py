"""Rows → tables for people in the terminal: a readable set of columns, reasons and warnings below."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.results import doubt
from bench.results.records import Measurement, Run
from bench.results.rows import Row, by_model, label, title
from bench.views.sentences.verdicts import verdicts
from bench.views.tables import scoreboard
from bench.views.tables.comparison_tables import (
    AGREED,
    COLUMNS,
    CONTENDER,
    LAYER_COLUMNS,
    end_to_end,
    failing,
    layer_table,
    words,
)
from bench.views.tables.grid import Grid
from bench.views.tables.table import Column, Table, pick
from bench.words import orders, units
from kernels.precision import MIXED

if TYPE_CHECKING:
    from rich.console import RenderableType

# Green is what is decided to be faster, and nothing else: that a case ran well needs no colour.
STYLES = {"ok": "", "untimed": "", "unsupported": "yellow", "cancelled": "yellow"}
_KNOWN = {column.name: column for column in COLUMNS}


def _half_width(row: Row) -> float | None:
    """The further end of the interval, as a share of the median."""
    if not row.median_ns or row.low_ns is None or row.high_ns is None:
        return None
    return max(row.high_ns - row.median_ns, row.median_ns - row.low_ns) / row.median_ns


_TERMINAL = pick(
    COLUMNS,
    CONTENDER,
    "batch",
    replace(_KNOWN["disposition"], style=lambda row: STYLES.get(row.measurement.disposition, "bold red")),
    "median_s",
    Column("relative", _half_width, units.half_width, title="±"),
    "images_per_s",
    replace(
        _KNOWN["speedup"],
        left=True,
        style=lambda row: orders.STYLES[orders.role(row.verdict, row.speedup_doubts)],
    ),
    "top1",
    AGREED,
    "rel_l2_error",
    median_s="time",
    agreement="agree",
    rel_l2_error="error",
)
# Tables of several models are of one width; no figure is ever cut in half where a terminal is narrow.
_LEAST = dict(zip((c.name for c in _TERMINAL), (13, 5, 9, 8, 5, 8, 13, 8, 8, 7), strict=True))
HELD = "the interval of the time includes this"
_SPARED = ("rel_l2_error", "images_per_s", "agreement", "top1", "relative")


def terminal(rows: Sequence[Row], runs: Sequence[Run] = ()) -> RenderableType:
    """Each model's line and scoreboard, then the tables for people, one a model, up to 112 columns wide, and
    with fewer columns where the terminal is narrower; why a case has no numbers stands below."""
    from rich.console import Group
    from rich.text import Text

    made = scoreboard.terminal(verdicts(rows, runs))
    made += [Text()] if made else []
    for found in by_model(rows).values():
        made.append(Text(_heading(found), style="bold"))
        made.append(Grid(Table(_TERMINAL, found), least=_LEAST, spared=_SPARED))
        if (sent := end_to_end(found, narrow=True)) is not None:
            references = dict.fromkeys(
                filter(None, (r.end_to_end.against for r in sent.rows if r.end_to_end))
            )
            against = f", speed-up against {' and '.join(references)}" if references else ""
            made.append(Text(f"{found[0].title}, end to end: host images to host answers{against}", "bold"))
            made.append(Grid(sent, below=True))
    told = [
        *accuracies(rows),
        *remarks(rows),
        *undecided(rows),
        *([doubt.MEANING] if any(row.doubts for row in rows) else []),
    ]
    return Group(*made, *(Text(line, style="dim") for line in told))


def _heading(rows: Sequence[Row]) -> str:
    counts = ", ".join(f"{count:,}" for count in sorted({row.case.images for row in rows if row.case.images}))
    references = dict.fromkeys(r.measurement.reference for r in rows if r.speedup is not None)
    # A library with a kernel swapped in is held against the same without it.
    swapped = any("swapped" in row.measurement.facts for row in rows)
    which = "each against its own" if swapped else "the one on the same device"
    each = f" ({which})" if len(references) > 1 else ""
    against = f"speed-up against {' or '.join(references)}{each}" if references else ""
    several = units.instances(row.measurement.instances for row in rows if row.measurement.samples_ns)
    images = f"{counts} images" if counts else ""
    return ", ".join(filter(None, (rows[0].title, images, against, several)))


def remarks(rows: Sequence[Row]) -> list[str]:
    """What the table has no room for: why cases have no numbers, and doubts, a reference's with the cases
    that were compared to it where it has no row of its own. Cases of a model that share a sentence share a
    line; doubts, and reasons why a time is unsteady, are one where they differ in their figures alone, with
    the largest."""
    grouped: dict[tuple[str, str], list[tuple[str, Row]]] = {}
    shown = {row.case for row in rows}
    for row in rows:
        m = row.measurement
        texts = [f"{words(m)}: {m.reason}" if m.reason else words(m)] if m.disposition != "ok" else []
        alone = row.against is None or row.against.case in shown
        told = row.own_doubts if alone else (*row.own_doubts, *row.speedup_doubts)
        unsteady = [f"{sentence} ({HELD})" for sentence in row.unsteady]
        texts += [f"with {m.facts['swapped']}"] if "swapped" in m.facts else []
        texts += [m.facts[MIXED]] if MIXED in m.facts else []
        texts += about_accuracy(m)
        doubts: list[str] = []
        if m.end_to_end is not None and m.end_to_end.refused:
            texts.append(f"not measured end to end: {m.end_to_end.refused}")
        elif (flow := row.end_to_end) is not None:
            others = () if alone else flow.speedup_doubts
            doubts = [f"! {sentence}" for sentence in dict.fromkeys((*flow.doubts, *others))]
        own = re.compile(rf" at batch (?:{row.case.batch}|{row.case.batch:,})(?![\d,]*\d)")
        for text in (own.sub("", text) for text in texts):  # the line says of which batches it is
            grouped.setdefault((row.title, text), []).append((text, row))
        for text in (*unsteady, *doubts, *(f"! {warning}" for warning in told)):
            grouped.setdefault((row.title, doubt.without_figures(text)), []).append((text, row))
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


def undecided(rows: Sequence[Row]) -> list[str]:
    """Why verdicts are not decided, which their mark stands for; a line a reason that is alike."""
    known = {row.case.batch for row in rows}
    grouped: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row.undecided:
            grouped.setdefault((row.title, row.contender, doubt.without_figures(row.undecided)), []).append(
                row
            )
    return [
        f"{model}, {who} at batch {units.spans([row.case.batch for row in found], known)}: "
        f"! {found[0].undecided}"
        for (model, who, _), found in grouped.items()
    ]


def about_accuracy(measurement: Measurement) -> list[str]:
    """What stands beside an accuracy, or in its place: why there is none, another order of the classes, what
    was met among the images."""
    found = measurement.accuracy
    if found is None:
        return []
    refused = [f"no accuracy: {found.refused}"] if found.refused else []
    return [*refused, *([found.hint] if found.hint else []), *found.notes]


def accuracies(rows: Sequence[Row]) -> list[str]:
    """Top-1 and top-5 of each model with their intervals; of contenders that agree, once."""
    grouped: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        words = [
            f"{title_} {units.percent(rate)} ({units.percent(ends[0])} to {units.percent(ends[1])})"
            for name, title_ in (("top1", "top-1"), ("top5", "top-5"))
            if (ends := row.accuracy_interval(name))
            and (rate := getattr(row.measurement.accuracy, name)) is not None
        ]
        if words and row.measurement.accuracy is not None:
            text = f"{', '.join(words)} on {row.measurement.accuracy.images:,} images"
            grouped.setdefault((row.title, text), {})[row.contender] = None
    alone = {model: sum(name == model for name, _ in grouped) == 1 for model, _ in grouped}
    return [
        f"{model}{'' if alone[model] else ', ' + ', '.join(who)}: {text} (95 % interval)"
        for (model, text), who in grouped.items()
    ]


# Columns of a layer that tell nothing without its time.
_OF_TIMES = ("time_s", "share", "gflops_per_s", "gb_per_s")
_LAYERS = pick(
    LAYER_COLUMNS,
    *("nodes", "op_type", "shape", "rung", "computed_in", *_OF_TIMES),
    *(
        replace(column, title=kind, style=failing(kind))
        for kind in ("isolated", "propagated")
        for column in pick(LAYER_COLUMNS, f"{kind}_rel_l2")
    ),
)


def layers(measurements: Sequence[Measurement]) -> RenderableType:
    """One table a case: each layer's time with its share, rates and errors."""
    from rich.console import Group
    from rich.text import Text

    made: list[RenderableType] = []
    for measurement in measurements:
        if not measurement.layers:
            continue
        case = measurement.case
        heading = f"{title(case.model)} on {label(case.backend, case.precision)}, batch {case.batch:,}"
        heading = doubt.read_out(heading, doubt.own(measurement))
        columns = _LAYERS
        if all(layer.time_ns is None for layer in measurement.layers):
            heading += ", layers not timed"
            columns = tuple(column for column in _LAYERS if column.name not in _OF_TIMES)
        if all(layer.precision in ("", case.precision) for layer in measurement.layers):
            columns = tuple(column for column in columns if column.name != "computed_in")
        table = replace(layer_table([measurement]), columns=columns)
        made.append(Grid(table, heading=heading, most=26, below=True, framed=True))
    return Group(*made) if made else Text("No case has its layers measured.")
