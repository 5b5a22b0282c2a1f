"""Intervals of medians and of their ratios, and the one rule by which two contenders are compared.

Times vary on three levels: INSTANCES (the same session created again: other addresses, another choice of
algorithm), the ROUNDS of each instance, and the SAMPLES of a round. Samples of one instance or round share
whatever the machine did to it. So the independent units are those of the highest level of which there are
several. The interval is Student's t over the means of these units (of the logarithms of the rounds' medians).
The spread of these means already contains the variation of the levels below, so each level counts once. This
is the analysis of variance of a nested design with random effects, where the error of the grand mean is the
mean square of the highest level with its degrees of freedom (H. Scheffé, "The Analysis of Variance", 1959,
chapter 7). It is exact if the levels are balanced, and needs neither variance components nor Satterthwaite's
approximate degrees of freedom.

That holds for medians. On the host's clock a low quantile may be compared instead, chosen from the reference
alone (bench.measure.stopping). What other programs add to a pass only makes it longer, for milliseconds or
for whole turns. So the quantile is taken over all samples of an instance, and with eight instances or more
the trimmed mean is used (bench.results.stats.student). A verdict stands only if the median and the mean of
the same turns do not contradict it (`compare`), and if other programs left enough of the machine
(bench.results.stats.medians).

What else was tried, in the simulation that docs/trust.md reports (`python -m tests.bench.results.coverage`):
a bootstrap that resamples rounds and then samples within them counts the samples' variance twice and is too
narrow with few rounds, both as A. C. Davison and D. V. Hinkley derive ("Bootstrap Methods and their
Application", 1997, section 3.8), and its hull with Student's t is too wide for both. The jackknife of the
median of all by rounds contains the true value in 83 to 94 of 100 cases where it should in 95.
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
    about,
    log,
    median_interval,
    ratio_interval,
    ratio_of,
    sides_spread,
)
from bench.results.stats.medians import clock_tick, median, median_draws, overloaded, split_rounds
from bench.results.stats.medians import quantile as part_of
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
    "tells",
    "uncertainty",
    "unsteadiness",
    "verdict",
]

SAME_BOUND = 0.02  # two times within ±2 % are the same
UNQUIET = 0.05  # rounds that leave the median this uncertain are worth a warning (bench.measure.unrest)
# More rounds of the same instances narrow an interval by a twentieth at most once their part of its square
# is this small.
HARDLY = 0.1


class Verdict(enum.StrEnum):
    """How a contender stands to the reference, by the interval of the ratio of their median times."""

    SAME = "SAME"
    UNCLEAR = "UNCLEAR"
    FASTER = "FASTER"
    SLOWER = "SLOWER"


def verdict(ratio: Interval, bound: float = SAME_BOUND) -> Verdict:
    """SAME where the interval lies within ±bound of 1, UNCLEAR where it straddles that or is not known, else
    which way."""
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
    """What two that were timed together are to each other. ratio: of their times, ours over the reference's,
    by the quantile of their turns that was chosen; by_median: by their medians; undecided: why the verdict is
    UNCLEAR, as a sentence without a full stop ("" where it is not)."""

    ratio: Interval
    verdict: Verdict
    undecided: str
    by_median: Interval


ONE_SAMPLE = "not decided: one sample says nothing of its own spread"
ONE_ROUND = "not decided: only one round, and nothing is known of what others would have been"
CONTRADICTED = "not decided: round by round it is one way, and by the medians of all samples the other"


def compare(ours: Timed, reference: Timed, seed: int = 0, *, tick: float = 0.0) -> Comparison:
    """Ratio of times and verdict of two that were timed together. ValueError without samples.

    UNCLEAR is what rests on one sample, which says nothing of its own spread, or on one round; what was
    measured while other programs held the machine; and what the median or the mean of the same turns
    contradict: a low quantile is of the fastest passes alone, and who is fast in some of them is not fast.
    """
    quantile = compared_by(ours, reference)
    ratio = by_median = ratio_of(ours, reference, seed, tick, MEDIAN)
    if quantile < MEDIAN:
        ratio = ratio_of(ours, reference, seed, tick, quantile)
    found = verdict(ratio)
    if not ratio.known:
        why = ONE_SAMPLE
    elif not tells(ours, reference):
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
        why = next(filter(None, (_against(ratio, name, of) for name, of in others.items())), "")
    return Comparison(ratio, Verdict.UNCLEAR if why else found, why, by_median)


def contradicted(found: Verdict, ours: Timed, reference: Timed, tick: float = 0.0) -> bool:
    """Whether the medians of all samples, which stand beside a verdict, are the other way round: then neither
    order is claimed."""
    one, other = (
        median(side.samples_ns, max(tick, clock_tick(side.samples_ns))) for side in (ours, reference)
    )
    return one >= other if found is Verdict.FASTER else one <= other if found is Verdict.SLOWER else False


def compared_by(*sides: Timed) -> float:
    """The quantile of a turn by which these are compared: what was chosen before, on the reference alone
    (bench.measure.stopping), or the median where it was chosen for one of them."""
    found = max(side.quantile for side in sides)
    return found if 0 <= found <= MEDIAN else MEDIAN  # a record may come from anybody


def _against(ratio: Interval, name: str, other: Interval) -> str:
    """That the ratio by the median or by the mean contradicts the one that a verdict rests on: it is decided
    otherwise, or lies apart from it by more than the bound. "" where it does not."""
    ours, theirs = verdict(ratio), verdict(other)
    apart = max(other.low / ratio.high, ratio.low / max(other.high, TINY)) > 1 + SAME_BOUND
    if theirs is ours or (theirs is Verdict.UNCLEAR and not apart):
        return ""
    return f"not decided: the fastest passes of each turn say otherwise than the {name} of all"


def across(ratio: Interval, bound: float = SAME_BOUND) -> str:
    """That an interval reaches across the bound between the verdicts, as a sentence. It is told as a
    speed-up: the reference's time over ours."""
    told = orders.span(ratio.inverse.low, ratio.inverse.high)
    ends = "bounds" if ratio.low < 1 - bound and ratio.high > 1 + bound else "bound"
    return f"not decided: the interval {told} reaches across the ±{bound:.0%} {ends}"


def tells(ours: Timed, reference: Timed) -> bool:
    """Whether both have more than one round: what they tell of each other is else no ground for a verdict."""
    return min(len(split_rounds(side.samples_ns, side.rounds)) for side in (ours, reference)) > 1


def round_ratios(ours: Timed, reference: Timed) -> tuple[float, ...]:
    """Median time of the one over that of the other in each round that both had."""
    divided = [split_rounds(side.samples_ns, side.rounds) for side in (ours, reference)]
    steps = [clock_tick(side.samples_ns) for side in (ours, reference)]
    return tuple(
        math.exp(log(median(one, steps[0])) - log(median(other, steps[1])))
        for one, other in zip(*divided, strict=False)
    )


class Outlook(enum.Enum):
    """What more rounds would bring: the verdict is clear, is none that they could make clear, or may become
    so. Of one that is compared with nobody: its median, which is never clear here."""

    CLEAR = enum.auto()
    HOPELESS = enum.auto()
    OPEN = enum.auto()


def outlook(ours: Timed, reference: Timed | None = None, *, tick: float = 0.0) -> Outlook:
    """CLEAR by an interval of SURE; HOPELESS where more rounds of the same instances would hardly narrow it:
    what is left of it is what the instances differ by, or the clock's tick."""
    sides = [ours] if reference is None else [ours, reference]
    spread, margin = sides_spread(sides, 0, tick, compared_by(*sides))
    sure = about(spread.centre, _sure(spread, margin))
    if reference is not None and verdict(sure) is not Verdict.UNCLEAR:
        decided = compare(ours, reference, tick=tick).verdict is not Verdict.UNCLEAR
        return Outlook.CLEAR if decided else Outlook.OPEN
    hopeless = spread.half <= margin or spread.within <= HARDLY
    return Outlook.HOPELESS if hopeless else Outlook.OPEN


def clear_of(ours: Timed, reference: Timed, bound: float, *, tick: float = 0.0) -> bool:
    """Whether the ratio of two that were timed together is clearly above this bound, or clearly below: by an
    interval of SURE, as whoever looks after each round has to."""
    if not tells(ours, reference):
        return False
    spread, margin = sides_spread([ours, reference], 0, tick, compared_by(ours, reference))
    return abs(spread.centre - log(bound)) > _sure(spread, margin)


def uncertainty(timed: Timed, quantile: float) -> float:
    """How well one contender alone is known by this quantile of its turns: the half-width of the interval, as
    a fraction of it. inf for fewer than two rounds."""
    if len(split_rounds(timed.samples_ns, timed.rounds)) < 2:
        return math.inf
    spread, margin = sides_spread([timed], 0, 0.0, quantile)
    return math.expm1(min(max(spread.half, margin), 700.0))


def unsteadiness(timed: Timed, quantile: float) -> float:
    """What the turns of one contender, summed up by this quantile, differ by from the turn before: the
    half-width of the interval of the mean difference, as of a logarithm. What lasts longer than a turn is not
    in it, as it is in neither of two that are compared. inf for fewer than three rounds."""
    turns = split_rounds(timed.samples_ns, timed.rounds)
    if len(turns) < 3:
        return math.inf
    _, error, freedom = mean_error(np.diff([log(part_of(turn, quantile)) for turn in turns]), FIFTH)
    return student(freedom) * error


def _sure(spread: Spread, margin: float) -> float:
    """The half-width of SURE."""
    return max(spread.half * student(spread.freedom, SURE) / student(spread.freedom), margin)
