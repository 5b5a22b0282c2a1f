"""Comparisons judged again from their samples: what each way to sum up a turn makes of the same turns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from bench.measure.selfcheck import SelfcheckSummary, SelfComparison, summary
from bench.results import stats
from bench.results.stats import Comparison, Verdict

QUANTILES = {"median": 0.5, "lower quartile": 0.25, "tenth percentile": 0.1}
Way = Callable[[SelfComparison], Comparison]


@dataclass(frozen=True)
class Judged:
    """Comparisons of one condition, judged one way."""

    model: str
    batch: int
    slower: float
    busy: int
    way: str
    summary: SelfcheckSummary


def judged(comparisons: Sequence[SelfComparison]) -> Iterator[Judged]:
    """Of those whose samples were kept, by condition and way."""
    by: dict[tuple[str, int, float, int], list[SelfComparison]] = {}
    for one in comparisons:
        if len(one.sides) == 2:
            by.setdefault((one.case.model, one.case.batch, one.slower, one.busy), []).append(one)
    for condition, own in by.items():
        for way, judge in ways().items():
            found = ((one, judge(one)) for one in own)
            again = [msgspec.structs.replace(one, ratio=it.ratio, verdict=it.verdict) for one, it in found]
            yield Judged(*condition, way, summary(again))


def ways() -> dict[str, Way]:
    """By name: as the program judges; by each quantile, whichever was chosen."""
    found: dict[str, Way] = {"the rule": lambda one: stats.compare(one.sides[0], one.sides[1])}
    for name, quantile in QUANTILES.items():
        found[name] = partial(_by, quantile)
    return found


def _by(quantile: float, one: SelfComparison) -> Comparison:
    """By this quantile, however busy the machine was."""
    ours, other = (msgspec.structs.replace(side, quantile=quantile, load={}) for side in one.sides)
    return stats.compare(ours, other)


def lines(found: Sequence[Judged]) -> Iterator[str]:
    """Markdown."""
    yield "| model | batch | planted | busy | by | compared | half-width | misses | unclear | wrong | right |"
    yield "|---|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|"
    for it in found:
        told = it.summary
        half = f"{100 * told.half_width:.2f} %" if math.isfinite(told.half_width) else "not known"
        cells = [it.model, it.batch, f"{it.slower:g}×", it.busy, it.way, told.comparisons, half]
        unclear = told.verdicts.get(Verdict.UNCLEAR, 0)
        cells += [told.missed, unclear, told.wrong, told.comparisons - unclear - told.wrong]
        yield "| " + " | ".join(map(str, cells)) + " |"
