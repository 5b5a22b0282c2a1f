"""Points and bars that are to be doubted, told in words: how many in the headline, which and why in the small
print, so that neither can be read without the other (bench.results.doubt)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bench.results import doubt
from bench.views.charts.definitions import Bar, Chart, Point
from bench.words import units

LEGEND = "doubtful"
HOLLOW = "! Hollow or hatched is what is to be doubted:"
MOST = 6  # notes


def with_doubts(chart: Chart, named: bool = False) -> Chart:
    """The chart with a clause in its finding and its notes where something it shows is to be doubted. named:
    the finding tells of the doubts itself.

    Each kind of doubt is a note: where it is found, and in words. What has no value has its own mark.
    """
    shown = list(_shown(chart))
    found = [(who, item) for who, item in shown if item.doubts]
    if not found:
        return chart
    what = "bar" if isinstance(found[0][1], Bar) else "point"
    of = f"{len(found):,} of {len(shown):,} {what}{'s' * (len(shown) != 1)}"
    clause = (
        f"{of} {'is' if len(found) == 1 else 'are'} doubtful: "
        f"{doubt.in_short(text for _, item in found for text in item.doubts)}."
    )
    finding = chart.finding
    if not named:
        finding = f"{finding.removesuffix('.')}; {clause}" if finding else clause
    notes = (HOLLOW, *_notes(chart, found))
    return msgspec.structs.replace(chart, finding=finding, notes=(*chart.notes, *notes))


def has_doubts(chart: Chart) -> bool:
    """Whether something of the chart is drawn hollow or hatched, which a legend then explains."""
    return any(
        any(bar.doubts for bar in panel.bars)
        or any(point.doubts for series in panel.series for point in series.points)
        for panel in chart.panels
    )


def _shown(chart: Chart) -> Iterable[tuple[str, Point | Bar]]:
    """What was measured, with whose it is; a limit, which has no marker, was not."""
    for panel in chart.panels:
        for series in panel.series:
            if series.marker and not series.overlay:
                yield from ((series.label, point) for point in series.points)
        yield from ((panel.title, bar) for bar in panel.bars if bar.parts)


def _notes(chart: Chart, found: Iterable[tuple[str, Point | Bar]]) -> list[str]:
    axis = chart.panels[0].x
    named = dict(zip(axis.ticks, axis.labels, strict=True)) if axis.labels else {}
    over_batches = axis.label.startswith("batch")
    known = {int(x) for panel in chart.panels for x in panel.x.ticks} if over_batches else set()
    kinds: dict[str, list[tuple[str, str, float]]] = {}
    for who, item in found:
        for text in item.doubts:
            kinds.setdefault(doubt.without_figures(text), []).append((text, named.get(item.x, who), item.x))
    lines = []
    for items in kinds.values():
        where: dict[str, list[int]] = {}
        for _, who, x in items:
            where.setdefault(who, []).append(int(x))
        places = (
            f"{who} at batch {units.spans(xs, known)}" if over_batches else who for who, xs in where.items()
        )
        lines.append(f"! {', '.join(places)}: {doubt.spanned([text for text, _, _ in items])}")
    return (
        lines
        if len(lines) <= MOST
        else [*lines[: MOST - 1], f"! and {len(lines) - MOST + 1} more: see the table."]
    )
