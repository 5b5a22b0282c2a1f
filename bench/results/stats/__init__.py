"""Intervals of median times and of their ratios, and the one rule that compares two contenders.

Words: a SAMPLE is one measured time in ns. In a ROUND the contenders take turns; a contender's samples of one
round are its TURN. An INSTANCE is one creation of the same session; creating it again gives other addresses
and perhaps another choice of algorithm. A QUANTILE of 0.5 is the median; 0.25 is the time below which a
quarter of the samples lies.

Times vary on three levels: instances, the rounds of each instance, and the samples of each round. Samples of
one instance or round share whatever the machine did to it, so they are not independent. The independent units
are those of the highest level that has several. The interval is Student's t over the means of these units (of
the logarithms of the rounds' medians). The spread of these means already contains the variation of the levels
below, so each level counts once. This is the analysis of variance of a nested design with random effects,
where the error of the grand mean is the mean square of the highest level with its degrees of freedom (H.
Scheffé, "The Analysis of Variance", 1959, chapter 7). It is exact if the levels are balanced, and needs
neither variance components nor Satterthwaite's approximate degrees of freedom.

That holds for medians. For passes that are timed on the host's clock, a low quantile may be compared instead.
It is chosen from the samples of the reference alone (bench.measure.stopping). Other programs only make a pass
longer, for milliseconds or for whole turns. So the quantile is taken over all samples of an instance, and
with eight instances or more the trimmed mean is used (bench.results.stats.student). A verdict stands only if
the median and the mean of the same turns do not contradict it (`compare`), and if other programs did not use
too much of the machine (bench.results.stats.medians).

What else was tried, in the simulation that docs/trust.md reports (`python -m tests.bench.results.coverage`):

- A bootstrap that resamples rounds and then samples within them counts the samples' variance twice, and is
  too narrow with few rounds. A. C. Davison and D. V. Hinkley derive both ("Bootstrap Methods and their
  Application", 1997, section 3.8). The hull of this interval and Student's t (the smallest interval that
  contains both) is too wide.
- The jackknife of the median of all samples by rounds contains the true value in 83 to 94 of 100 cases; it
  should in 95.
"""

from __future__ import annotations

import enum
import math
from typing import NamedTuple

import numpy as np

from bench.results.stats.interval import (
    MEAN,
    MEDIAN,
    TINY,
    Interval,
    Sampled,
    Side,
    Spread,
    Timed,
    from_logarithms,
    log,
    median_interval,
    ratio_interval,
    ratio_of,
    sides_spread,
)
from bench.results.stats.medians import clock_tick, median, median_draws, overloaded, split_rounds
from bench.results.stats.medians import quantile as quantile_of
from bench.results.stats.student import FIFTH, SURE, mean_error, student
from bench.words import orders

__all__ = [
    "MEDIAN",
    "SURE",
    "Comparison",
    "Interval",
    "Outlook",
    "Sampled",
    "Side",
    "Timed",
    "Verdict",
    "clear_of",
    "clock_tick",
    "compare",
    "FIFTH",
    "mean_error",
    "median",
    "median_draws",
    "median_interval",
    "outlook",
    "overloaded",
    "ratio_interval",
    "ratio_of",
    "round_ratios",
    "split_rounds",
    "student",
    "has_rounds",
    "uncertainty",
    "unsteadiness",
    "verdict",
]

SAME_BOUND = 0.02  # two times within ±2 % are the same
UNQUIET_WIDTH = 0.05  # rounds that leave the median this uncertain are worth a warning (bench.measure.unrest)
# More rounds of the same instances narrow an interval by a twentieth at most once their part of its square
# is this small.
HARDLY = 0.1


class Verdict(enum.StrEnum):
    """The result of a comparison, by the interval of the ratio of times (ours over the reference's): ours
    takes the same time, less (FASTER) or more (SLOWER), or it is not decided (UNCLEAR)."""

    SAME = "SAME"
    UNCLEAR = "UNCLEAR"
    FASTER = "FASTER"
    SLOWER = "SLOWER"


def verdict(ratio: Interval, bound: float = SAME_BOUND) -> Verdict:
    """The verdict on a ratio of ours over the reference's time, by its interval alone. FASTER: all of it lies
    below 1 − bound. SLOWER: all of it lies above 1 + bound. SAME: all of it lies between the two. Else
    UNCLEAR, as well as if the interval is not known."""
    if not ratio.known:
        return Verdict.UNCLEAR
    low, high = 1.0 - bound, 1.0 + bound
    if ratio.high < low:
        return Verdict.FASTER
    if ratio.low > high:
        return Verdict.SLOWER
    if ratio.low >= low and ratio.high <= high:
        return Verdict.SAME
    return Verdict.UNCLEAR


class Comparison(NamedTuple):
    """The result of `compare` for two contenders that were timed together.

    - ratio: our time over the reference's time, by the quantile that was chosen, with its 95 % interval.
    - by_median: the same by the medians.
    - verdict: FASTER means that ours takes less time.
    - undecided: why the verdict is UNCLEAR, as a sentence without a full stop; "" if it is not.
    """

    ratio: Interval
    verdict: Verdict
    undecided: str
    by_median: Interval


ONE_SAMPLE = "not decided: one sample says nothing of its own spread"
ONE_ROUND = "not decided: only one round, and nothing is known of what others would have been"
CONTRADICTED = "not decided: round by round it is one way, and by the medians of all samples the other"


def compare(ours: Timed, reference: Timed, seed: int = 0, *, tick: float = 0.0) -> Comparison:
    """Compare two contenders that were timed together: the ratio of their times and the verdict. tick: the
    step of the clock in ns, 0 if not known. Raises ValueError if one has no samples, or if its median is not
    above 0.

    The verdict is UNCLEAR in each of these cases, of which the first is told:

    - One side has a single sample in the paired rounds, or a single round.
    - Other programs used too much of the machine meanwhile.
    - The interval reaches across a bound (see `verdict`).
    - The medians of all samples are in the other order than the verdict.
    - A low quantile was compared, and the median or the mean of the same samples contradicts it. Such a
      quantile sees only the fastest passes, and a contender that is fast in some passes is not therefore
      fast.
    """
    quantile = compared_by(ours, reference)
    ratio = by_median = ratio_of(ours, reference, seed, tick, MEDIAN)
    if quantile < MEDIAN:
        ratio = ratio_of(ours, reference, seed, tick, quantile)
    found = verdict(ratio)
    if not ratio.known:
        why = ONE_SAMPLE
    elif not has_rounds(ours, reference):
        why = ONE_ROUND
    elif busy := overloaded(ours.load) or overloaded(reference.load):
        why = busy
    elif found is Verdict.UNCLEAR:
        why = across(ratio)
    elif contradicted(found, ours, reference, tick):
        why = CONTRADICTED
    else:
        others = {"median": by_median}
        if quantile < MEDIAN:
            others["mean"] = ratio_of(ours, reference, seed, tick, MEAN)
        why = next(filter(None, (_contradiction(ratio, name, of) for name, of in others.items())), "")
    return Comparison(ratio, Verdict.UNCLEAR if why else found, why, by_median)


def contradicted(found: Verdict, ours: Timed, reference: Timed, tick: float = 0.0) -> bool:
    """Whether the medians of all samples, which are shown beside the verdict, are not in the order that the
    verdict claims. Then neither is called faster. Always False for a verdict other than FASTER and SLOWER."""
    one, other = (
        median(side.samples_ns, max(tick, clock_tick(side.samples_ns))) for side in (ours, reference)
    )
    return one >= other if found is Verdict.FASTER else one <= other if found is Verdict.SLOWER else False


def compared_by(*sides: Timed) -> float:
    """The quantile by which these contenders are compared: the largest of theirs, so a low one only if it was
    chosen for all. The median if that is not from 0 to 0.5."""
    found = max(side.quantile for side in sides)
    return found if 0 <= found <= MEDIAN else MEDIAN  # a record may come from anybody


def _contradiction(ratio: Interval, name: str, other: Interval) -> str:
    """Why the ratio by the median or by the mean (`other`; `name` says which) contradicts the ratio by the
    low quantile, as a sentence. It does if it gives another decided verdict, or if it is UNCLEAR and its
    interval lies further away than SAME_BOUND. "" if it does not contradict."""
    ours, theirs = verdict(ratio), verdict(other)
    apart = max(other.low / ratio.high, ratio.low / max(other.high, TINY)) > 1 + SAME_BOUND
    if theirs is ours or (theirs is Verdict.UNCLEAR and not apart):
        return ""
    return f"not decided: the fastest passes of each turn say otherwise than the {name} of all"


def across(ratio: Interval, bound: float = SAME_BOUND) -> str:
    """A sentence for an interval that reaches across a bound, so that there is no verdict. ratio: our time
    over the reference's. The sentence gives it as a speed-up, which is the reference's time over ours."""
    told = orders.span(ratio.inverse.low, ratio.inverse.high)
    ends = "bounds" if ratio.low < 1 - bound and ratio.high > 1 + bound else "bound"
    return f"not decided: the interval {told} reaches across the ±{bound:.0%} {ends}"


def has_rounds(ours: Timed, reference: Timed) -> bool:
    """Whether both contenders have more than one round. Without that there is no verdict."""
    return min(len(split_rounds(side.samples_ns, side.rounds)) for side in (ours, reference)) > 1


def round_ratios(ours: Timed, reference: Timed) -> tuple[float, ...]:
    """For each round that both have: the median time of `ours` divided by that of `reference`."""
    divided = [split_rounds(side.samples_ns, side.rounds) for side in (ours, reference)]
    steps = [clock_tick(side.samples_ns) for side in (ours, reference)]
    return tuple(
        math.exp(log(median(one, steps[0])) - log(median(other, steps[1])))
        for one, other in zip(*divided, strict=False)
    )


class Outlook(enum.Enum):
    """What more rounds can still do for a verdict. CLEAR: the verdict is there already. HOPELESS: more rounds
    would hardly help. OPEN: more rounds may decide it. A contender that is compared with nothing is never
    CLEAR."""

    CLEAR = enum.auto()
    HOPELESS = enum.auto()
    OPEN = enum.auto()


def outlook(ours: Timed, reference: Timed | None = None, *, tick: float = 0.0) -> Outlook:
    """What more rounds can still do for the verdict on these two. Without a reference: for the interval of
    `ours` alone.

    CLEAR: decided by an interval of 99 % (SURE) and by `compare`. HOPELESS: more rounds of the same instances
    would hardly narrow the interval, because what is left of it comes from differences between instances or
    from the tick of the clock. Else OPEN, and also if that interval decides and `compare` does not. Raises
    ValueError as `compare` does.
    """
    sides = [ours] if reference is None else [ours, reference]
    spread, margin = sides_spread(sides, 0, tick, compared_by(*sides))
    sure = from_logarithms(spread.centre, _sure_half(spread, margin))
    if reference is not None and verdict(sure) is not Verdict.UNCLEAR:
        decided = compare(ours, reference, tick=tick).verdict is not Verdict.UNCLEAR
        return Outlook.CLEAR if decided else Outlook.OPEN
    hopeless = spread.half <= margin or spread.within <= HARDLY
    return Outlook.HOPELESS if hopeless else Outlook.OPEN


def clear_of(ours: Timed, reference: Timed, bound: float, *, tick: float = 0.0) -> bool:
    """Whether the ratio of our time to the reference's is clearly not `bound`: the interval of 99 % (SURE)
    lies all above it or all below. The interval is wider than 95 % because the caller looks again after each
    round. False if one of them has a single round. bound: a ratio above 0, for example 1.02."""
    if not has_rounds(ours, reference):
        return False
    spread, margin = sides_spread([ours, reference], 0, tick, compared_by(ours, reference))
    return abs(spread.centre - log(bound)) > _sure_half(spread, margin)


def uncertainty(timed: Timed, quantile: float) -> float:
    """How well the time of one contender is known by this quantile: the half-width of its 95 % interval, as a
    fraction of the time. inf if there are fewer than two rounds."""
    if len(split_rounds(timed.samples_ns, timed.rounds)) < 2:
        return math.inf
    spread, margin = sides_spread([timed], 0, 0.0, quantile)
    return math.expm1(min(max(spread.half, margin), 700.0))


def unsteadiness(timed: Timed, quantile: float) -> float:
    """How much a contender's time changes from one turn to the next, by this quantile of each turn: the
    half-width of the 95 % interval of the mean change, as a logarithm (0.01: about 1 %). A disturbance that
    lasts longer than a turn is not in it, because neighbouring turns share it. Both sides of a comparison
    share it too. inf if there are fewer than three rounds."""
    turns = split_rounds(timed.samples_ns, timed.rounds)
    if len(turns) < 3:
        return math.inf
    _, error, freedom = mean_error(np.diff([log(quantile_of(turn, quantile)) for turn in turns]), FIFTH)
    return student(freedom) * error


def _sure_half(spread: Spread, margin: float) -> float:
    """The half-width of the 99 % interval (SURE), from a spread, whose own is of 95 %."""
    return max(spread.half * student(spread.freedom, SURE) / student(spread.freedom), margin)
