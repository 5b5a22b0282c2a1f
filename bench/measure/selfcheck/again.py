"""Comparisons judged again from their samples: what each way to sum up a turn makes of the same turns."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from bench.measure.selfcheck import SelfComparison
from bench.results import stats
from bench.results.stats import Comparison, Verdict

QUANTILES = {"median": 0.5, "lower quartile": 0.25, "tenth percentile": 0.1}
Way = Callable[[SelfComparison], Comparison]


@dataclass(frozen=True)
class Judged:
    """Comparisons of one condition, judged one way. half_width: the median of the ratios' intervals; unclear,
    wrong (called the wrong way round, or apart where they are equal), found (the planted difference): how
    many."""

    model: str
    batch: int
    slower: float
    busy: int
    way: str
    comparisons: int
    half_width: float
    missed: int
    unclear: int
    wrong: int
    found: int


def judged(comparisons: Sequence[SelfComparison]) -> Iterator[Judged]:
    """Of those whose samples were kept, by condition and way."""
    by: dict[tuple[str, int, float, int], list[SelfComparison]] = {}
    for one in comparisons:
        if len(one.sides) == 2:
            by.setdefault((one.case.model, one.case.batch, one.slower, one.busy), []).append(one)
    for (model, batch, slower, busy), own in by.items():
        for way, judge in ways().items():
            found = [judge(one) for one in own]
            right = Verdict.SLOWER if slower > 1 + stats.SAME_BOUND else Verdict.SAME
            yield Judged(
                model=model,
                batch=batch,
                slower=slower,
                busy=busy,
                way=way,
                comparisons=len(own),
                half_width=statistics.median(it.ratio.relative for it in found),
                missed=sum(not it.ratio.low <= slower <= it.ratio.high for it in found),
                unclear=sum(it.verdict is Verdict.UNCLEAR for it in found),
                wrong=sum(it.verdict not in (Verdict.UNCLEAR, right) for it in found),
                found=sum(it.verdict is right for it in found),
            )


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
        half = f"{100 * it.half_width:.2f} %" if math.isfinite(it.half_width) else "not known"
        cells = [it.model, it.batch, f"{it.slower:g}×", it.busy, it.way, it.comparisons, half]
        cells += [it.missed, it.unclear, it.wrong, it.found]
        yield "| " + " | ".join(map(str, cells)) + " |"
