"""Rows → lines, stacks and marks: what the charts share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from bench.results import doubt
from bench.results.records import Run
from bench.results.rows import Row, contenders, label
from bench.views.charts.definitions import (
    Axis,
    Bar,
    BarPart,
    Category,
    Chart,
    MissingPoint,
    Panel,
    Point,
    Series,
)
from bench.words import palette, units


def most_images(items: Sequence[Row]) -> list[Row]:
    """Of cases that differ in their image count alone, the one with the most: times do not depend on it."""
    best: dict[tuple[str, str, str, int], Row] = {}
    for row in items:
        case = row.case
        key = (case.model, case.backend, case.precision, case.batch)
        if key not in best or (row.completed, case.images) > (best[key].completed, best[key].case.images):
            best[key] = row
    return list(best.values())


def batches(items: Iterable[Row]) -> Axis:
    ticks = tuple(float(b) for b in sorted({row.case.batch for row in items}))
    return Axis(label="batch size", unit="images", scale="log", ticks=ticks)


def fraction(field: str) -> Callable[[Row], Point | None]:
    def value(row: Row) -> Point | None:
        accuracy = row.measurement.accuracy
        if accuracy is None or (fraction := getattr(accuracy, field)) is None:
            return None
        return Point(x=row.case.batch, y=fraction, text=units.percent(fraction))

    return value


def point(
    row: Row, y: float, low: float | None, high: float | None, text: str, doubts: tuple[str, ...]
) -> Point:
    """What a row came to; doubts: those of the figure, which the read-out ends in."""
    return Point(x=row.case.batch, y=y, low=low, high=high, text=doubt.read_out(text, doubts), doubts=doubts)


def stack(row: Row, parts: tuple[BarPart, ...], total_ns: float) -> Bar:
    """A row's times as a bar with their sum above it."""
    doubts = row.own_doubts
    return Bar(
        x=row.case.batch,
        parts=parts,
        total=doubt.marked(units.duration(total_ns), doubts),
        doubts=doubts,
    )


def mark(row: Row) -> MissingPoint | None:
    measurement = row.measurement
    if measurement.disposition == "ok":
        return None
    return MissingPoint(x=row.case.batch, disposition=measurement.disposition, reason=measurement.reason)


def lines(
    items: Sequence[Row], value: Callable[[Row], Point | None], suffix: str = "", marks: bool = True
) -> list[Series]:
    """One series a backend and precision; a case that failed is a mark, also where a value is known, and one
    without a value a gap, also where it is no mark."""
    series = []
    for backend, precision in contenders(items):
        own = sorted(
            (r for r in items if (r.case.backend, r.case.precision) == (backend, precision)),
            key=lambda r: r.case.batch,
        )
        values = [(row, value(row)) for row in own]
        series.append(
            Series(
                label=label(backend, precision) + suffix,
                backend=backend,
                precision=precision,
                colour=palette.backend(backend, any(r.measurement.facts.get("user_kernels") for r in own)),
                dashed=all(r.is_reference for r in own),
                marker=palette.marker(precision),
                points=tuple(p for _, p in values if p is not None),
                marks=tuple(m for r in own if marks and (m := mark(r)) is not None),
                gaps=tuple(float(r.case.batch) for r, p in values if p is None),
            )
        )
    return series


def with_gaps(chart: Chart, model: str, runs: Iterable[Run]) -> Chart:
    """The chart with gaps in its lines, too, where a run meant a case and has not measured it."""
    planned: dict[tuple[str, str], set[float]] = {}
    for case in (case for run in runs for case in run.cases if case.model == model):
        planned.setdefault((case.backend, case.precision), set()).add(float(case.batch))

    def broken(line: Series) -> Series:
        known = {p.x for p in line.points}
        gaps = (planned.get((line.backend, line.precision), set()) | {*line.gaps}) - known
        return msgspec.structs.replace(line, gaps=tuple(sorted(gaps)))

    panels = (
        msgspec.structs.replace(panel, series=tuple(map(broken, panel.series))) for panel in chart.panels
    )
    return msgspec.structs.replace(chart, panels=tuple(panels))


def stacks(items: Sequence[Row], bar: Callable[[Row], Bar | None], y: Axis) -> tuple[Panel, ...]:
    panels = []
    for backend, precision in contenders(items):
        bars = []
        own = [r for r in items if (r.case.backend, r.case.precision) == (backend, precision)]
        for row in sorted(own, key=lambda r: r.case.batch):
            made = bar(row)
            if made is not None:
                bars.append(made)
            elif (found := mark(row)) is not None:
                bars.append(Bar(x=row.case.batch, mark=found))
        if any(b.parts for b in bars):
            panels.append(Panel(title=label(backend, precision), x=batches(items), y=y, bars=tuple(bars)))
    return tuple(panels)


def categories(
    panels: Iterable[Panel], known: dict[str, tuple[str, str]], always: tuple[str, ...] = ()
) -> tuple[Category, ...]:
    used = {p.category for panel in panels for bar in panel.bars for p in bar.parts if p.value > 0}
    return tuple(
        Category(key=key, label=words, colour=colour)
        for key, (words, colour) in known.items()
        if key in used or key in always
    )


def failures(items: Sequence[Row]) -> tuple[str, ...]:
    """Why points are missing or marked, one sentence for a backend and reason; at most four."""
    known = {row.case.batch for row in items}
    grouped: dict[tuple[str, str, str], list[int]] = {}
    for row in items:
        m = row.measurement
        if m.disposition != "ok":
            grouped.setdefault((row.contender, m.disposition, m.reason), []).append(row.case.batch)
    lines = [
        f"✕ {who}, batch {units.spans(batches, known)}: {disposition.replace('_', ' ')}"
        + (f" ({reason.rstrip('.')})" if reason else "")
        for (who, disposition, reason), batches in grouped.items()
    ]
    return (*lines[:4], f"✕ and {len(lines) - 4} more: see the table.") if len(lines) > 4 else tuple(lines)
