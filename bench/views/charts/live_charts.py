"""A ladder's charts while it is being climbed: every rung has its place from the start, and fills it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from bench.ladder.records import Ladder, RungMeasurement
from bench.results.ladder_rows import RungRow
from bench.views.charts.definitions import Axis, Bar, BarPart, Category, Chart
from bench.views.charts.ladder_charts import roofline, speed
from bench.words import palette, units

SO_FAR = "so_far"
_COLOUR = palette.MUTED


@dataclass(frozen=True)
class Going:
    """Where a case that has no measurement yet stands: words for it ("": it waits its turn), and what a pass
    takes so far, once that is known."""

    words: str = ""
    median_ns: float | None = None


def charts(ladder: Ladder, rows: Sequence[RungRow], going: Mapping[str, Going]) -> tuple[Chart, Chart | None]:
    """Speed and, once something is measured under known limits, the roofline. `rows` of the rungs and
    references measured so far; going: by case key, the cases that have none."""
    shown = planned(ladder, rows)
    return _filled(speed(ladder, shown), ladder, shown, going), roofline(ladder, rows)


def planned(ladder: Ladder, rows: Sequence[RungRow]) -> list[RungRow]:
    """A row for every rung and reference, in the ladder's order; an empty one of what is not measured."""
    known = {row.case.key: row for row in rows}
    return [
        known.get(case.key) or RungRow(RungMeasurement(case=case, disposition="cancelled"))
        for case in ladder.cases
        if case.scope != "model"
    ]


def _filled(chart: Chart, ladder: Ladder, shown: Sequence[RungRow], going: Mapping[str, Going]) -> Chart:
    """The bars that wait in place of marks, with what is known so far."""
    panel = chart.panels[0]
    rungs = [row for row in shown if not row.case.is_reference]
    bars, waiting, some = [], 0, False
    for bar, row in zip(panel.bars, rungs, strict=True):
        if row.measurement.disposition != "cancelled":
            bars.append(bar)
            continue
        waiting += 1
        now = going.get(row.case.key, Going())
        some = some or now.median_ns is not None
        bars.append(_bar(bar.x, row, ladder, now))
    categories = chart.categories
    if some:
        categories = (*categories, Category(key=SO_FAR, label="so far", colour=_COLOUR))
    finding = chart.finding
    if waiting:
        done = len(rungs) - waiting
        finding = f"{done} of {len(rungs)} rungs are settled." if done or going else ""
    y = panel.y
    if not any(bar.parts for bar in bars) and not panel.baselines:
        y = Axis(label=y.label, ticks=(0.0,))  # nothing to give the axis a scale
    return msgspec.structs.replace(
        chart,
        panels=(msgspec.structs.replace(panel, bars=tuple(bars), y=y),),
        categories=categories,
        finding=finding,
        notes=tuple(note for note in chart.notes if not note.endswith(": ")),
    )


def _bar(x: float, row: RungRow, ladder: Ladder, now: Going) -> Bar:
    if now.median_ns is None:
        return Bar(x=x, total=now.words)
    rate = (ladder.flops or ladder.nbytes) / now.median_ns * 1e9
    text = f"{row.name}: {units.duration(now.median_ns)} so far"
    return Bar(
        x=x,
        parts=(BarPart(category=SO_FAR, value=rate, text=text),),
        total=units.duration(now.median_ns),
    )
