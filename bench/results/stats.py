"""Intervals of medians and of their ratios, and the one rule by which two contenders are compared.

Times vary on three levels: INSTANCES (the same session created again: other addresses, another choice of
algorithm), the interleaving ROUNDS of each, and the SAMPLES within a round. What shares an instance or a
round shares whatever the machine did to it, so the units that are independent are those of the highest level
of which there are several. The interval is Student's t over the means of these units (of the logarithms of
the rounds' medians): what an instance's rounds and a round's samples vary by is in the spread of the means
already, so each level counts, and counts once. That is the analysis of variance of a nested design with
random effects, where the error of the grand mean is the mean square of the highest level with its degrees of
freedom (H. Scheffé, "The Analysis of Variance", 1959, chapter 7): exact where the levels are balanced, it
needs neither variance components nor Satterthwaite's approximate degrees of freedom.

What else was tried, in the simulation that docs/trust.md reports (`python -m tests.bench.results.coverage`):
a bootstrap that resamples rounds and then samples within them counts the samples' variance twice and is too
narrow with few rounds, both as A. C. Davison and D. V. Hinkley derive ("Bootstrap Methods and their
Application", 1997, section 3.8), and its hull with Student's t is too wide for both. The jackknife of the
median of all by rounds holds 83 to 94 of 100 where it says 95.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from bench.results.medians import clock_tick, median, median_draws, split_rounds
from bench.results.student import CONFIDENCE, SURE, student

SAME_BOUND = 0.02  # two medians within ±2 % are the same
UNQUIET = 0.05  # rounds that leave the median this uncertain are worth a warning (bench.measure.unrest)
DRAWS = 2000
# With a single round nothing is known of the drift between rounds; this much is assumed (either way).
UNSEEN_DRIFT = 0.05
# More rounds of the same instances narrow an interval by a twentieth at most once their part of its square
# is this small.
HARDLY = 0.1
_TINY = np.finfo(np.float64).tiny

Samples = Sequence[float] | np.ndarray


class Verdict(enum.StrEnum):
    """How a contender stands to the reference, by the interval of the ratio of their median times."""

    SAME = "SAME"
    UNCLEAR = "UNCLEAR"
    FASTER = "FASTER"
    SLOWER = "SLOWER"


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval, in the value's own unit (ns, or 1 for a ratio); low ≤ value ≤ high.

    known: whether low and high mean anything. A sample alone says nothing of its own spread: what rests on
    one is shown without them, and no verdict follows from it.
    """

    value: float
    low: float
    high: float
    known: bool = True

    @property
    def relative(self) -> float:
        """The further end's distance from the value, as a fraction of it ("within 1 %" is ≤ 0.01)."""
        if self.value == 0:
            return 0.0 if self.low == self.high else math.inf
        return max(self.high - self.value, self.value - self.low) / abs(self.value)

    @property
    def inverse(self) -> Interval:
        """Of one over the value, which is above 0."""
        return Interval(1 / self.value, 1 / self.high, 1 / self.low if self.low else math.inf, self.known)

    def __str__(self) -> str:
        if not self.known:
            return f"{self.value:.4g} (of one sample)"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


class Timed(Protocol):
    """What is compared: a Measurement, a Timing, or what else has samples in rounds, maybe of several
    instances."""

    @property
    def samples_ns(self) -> Samples: ...
    @property
    def rounds(self) -> Sequence[int]: ...
    @property
    def instances(self) -> Sequence[int]: ...


@dataclass(frozen=True)
class Side:
    """Samples of one contender in their rounds, and the instance of each round."""

    samples_ns: Samples
    rounds: Sequence[int]
    instances: Sequence[int]


def median_interval(
    samples: Samples,
    rounds: Sequence[int] = (),
    seed: int = 0,
    *,
    instances: Sequence[int] = (),
    tick: float = 0.0,
) -> Interval:
    """The median of all samples with its 95 % interval; `instances` says which instance each round was of.

    Two estimates are at hand: the median of all, which is what is shown, and the mean of the rounds' medians,
    which Student's t is about. Where rounds differ much the first errs more than t says, where samples have
    two modes the second is off; so the interval lies about the middle of the two, and what they disagree by
    is an error of its own, added in quadrature. With fewer than two rounds this is the bootstrap of the
    median, which knows nothing of other rounds; of one sample nothing is known but its value. `tick`: of the
    clock, where it is known. ValueError on no samples.
    """
    parts = split_rounds(samples, rounds)
    if not parts:
        raise ValueError("a median needs at least one sample")
    everything = np.concatenate(parts)
    tick = max(tick, clock_tick(everything))
    value = median(everything, tick)
    if len(parts) == 1:
        interval = _hull(value, median_draws(everything, DRAWS, np.random.default_rng(seed)))
    else:
        spread = _spread(_logs(parts, tick), _labels(instances, len(parts)))
        apart = spread.centre - _log(value)
        middle, half = spread.centre - apart / 2, math.hypot(spread.half, apart)
        interval = _around(value, _exp(middle - half), _exp(middle + half))
    known = everything.size > 1
    return _around(value, min(interval.low, value - tick / 2), max(interval.high, value + tick / 2), known)


def ratio_interval(
    ours: Samples,
    reference: Samples,
    our_rounds: Sequence[int] = (),
    reference_rounds: Sequence[int] = (),
    seed: int = 0,
    *,
    our_instances: Sequence[int] = (),
    reference_instances: Sequence[int] = (),
    tick: float = 0.0,
) -> Interval:
    """Median time of `ours` over that of `reference` (below 1: ours takes less), with a 95 % interval.

    Round i of one is paired with round i of the other, which ran next to it; rounds only one of them had are
    left out. The value is the geometric mean of the rounds' ratios and not the ratio of the medians of all:
    what a round did to both is divided out of it, where the other errs up to three times as much. Where the
    rounds left hold one sample of either side, the interval is not known. ValueError on no samples.
    """
    one = Side(ours, our_rounds, our_instances)
    other = Side(reference, reference_rounds, reference_instances)
    spread, margin = _sides([one, other], seed, tick)
    return _about(spread.centre, max(spread.half, margin), _several(one, other))


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
    """What two that were timed together are to each other. ratio: of their times, ours over the reference's;
    undecided: why the verdict is UNCLEAR, as a sentence without a full stop; "" where it is not."""

    ratio: Interval
    verdict: Verdict
    undecided: str = ""


ONE_SAMPLE = "not decided: one sample says nothing of its own spread"
ONE_ROUND = "not decided: only one round, and nothing is known of what others would have been"


def compare(ours: Timed, reference: Timed, seed: int = 0, *, tick: float = 0.0) -> Comparison:
    """Ratio of median times and verdict of two that were timed together. ValueError without samples.

    One sample says nothing of its own spread and one round nothing of what others would have been, so that
    with either every verdict is UNCLEAR.
    """
    ratio = ratio_interval(
        ours.samples_ns,
        reference.samples_ns,
        ours.rounds,
        reference.rounds,
        seed,
        our_instances=ours.instances,
        reference_instances=reference.instances,
        tick=tick,
    )
    if not ratio.known:
        return Comparison(ratio, Verdict.UNCLEAR, ONE_SAMPLE)
    if not tells(ours, reference):
        return Comparison(ratio, Verdict.UNCLEAR, ONE_ROUND)
    found = verdict(ratio)
    return Comparison(ratio, found, across(ratio) if found is Verdict.UNCLEAR else "")


def across(ratio: Interval, bound: float = SAME_BOUND) -> str:
    """That an interval reaches across the bound between the verdicts, as a sentence. It is told as a
    speed-up: the reference's time over ours."""
    low, high = (f"{1 / end:.3g}×" if end > 0 else "∞" for end in (ratio.high, ratio.low))
    ends = "bounds" if ratio.low < 1 - bound and ratio.high > 1 + bound else "bound"
    return f"not decided: the interval {low} to {high} reaches across the ±{bound:.0%} {ends}"


def tells(ours: Timed, reference: Timed) -> bool:
    """Whether both have more than one round: what they tell of each other is else no ground for a verdict."""
    return min(len(split_rounds(side.samples_ns, side.rounds)) for side in (ours, reference)) > 1


def round_ratios(ours: Timed, reference: Timed) -> tuple[float, ...]:
    """Median time of the one over that of the other in each round that both had."""
    divided = [split_rounds(side.samples_ns, side.rounds) for side in (ours, reference)]
    steps = [clock_tick(side.samples_ns) for side in (ours, reference)]
    return tuple(
        math.exp(_log(median(one, steps[0])) - _log(median(other, steps[1])))
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
    spread, margin = _sides(sides, 0, tick)
    sure = _about(spread.centre, _sure(spread, margin))
    if reference is not None and tells(ours, reference) and verdict(sure) is not Verdict.UNCLEAR:
        return Outlook.CLEAR
    hopeless = spread.half <= margin or spread.within <= HARDLY
    return Outlook.HOPELESS if hopeless else Outlook.OPEN


def clear_of(ours: Timed, reference: Timed, bound: float, *, tick: float = 0.0) -> bool:
    """Whether the ratio of two that were timed together is clearly above this bound, or clearly below: by an
    interval of SURE, as whoever looks after each round has to."""
    if not tells(ours, reference):
        return False
    spread, margin = _sides([ours, reference], 0, tick)
    return abs(spread.centre - _log(bound)) > _sure(spread, margin)


@dataclass(frozen=True)
class _Spread:
    """A mean with the half-width of its interval, both of logarithms, and its degrees of freedom; within:
    which part of the means' variance is that of the rounds within an instance (1 where there is one instance,
    or a round of each)."""

    centre: float
    half: float
    freedom: int = 1
    within: float = 1.0


def _spread(logs: np.ndarray, labels: Sequence[int]) -> _Spread:
    """Student's t over instances, or over rounds where all are of one instance; two rounds at least."""
    groups = [logs[np.asarray(labels) == label] for label in sorted(set(labels))]
    if len(groups) < 2:
        return _Spread(float(logs.mean()), _half(logs), len(logs) - 1)
    means = np.array([group.mean() for group in groups])
    freedom = len(logs) - len(groups)
    between, within = float(means.var(ddof=1)), 1.0
    if between > 0 and min(len(group) for group in groups) > 1:
        pooled = sum(float(((group - group.mean()) ** 2).sum()) for group in groups) / freedom
        within = pooled * float(np.mean([1 / len(group) for group in groups])) / between
    return _Spread(float(means.mean()), _half(means), len(means) - 1, within)


def _sure(spread: _Spread, margin: float) -> float:
    """The half-width of SURE."""
    return max(spread.half * student(spread.freedom, SURE) / student(spread.freedom), margin)


def _half(means: np.ndarray) -> float:
    return student(len(means) - 1) * float(means.std(ddof=1)) / math.sqrt(len(means))


def _sides(sides: Sequence[Timed], seed: int, tick: float) -> tuple[_Spread, float]:
    """The logarithm of the ratio of two (of one alone: of its time) with its spread, and the clock's tick as
    the least half-width of it."""
    divided = [split_rounds(side.samples_ns, side.rounds) for side in sides]
    count = min(map(len, divided))
    if not count:
        raise ValueError("a ratio of medians needs at least one sample on each side")
    logs, margins = [], []
    for parts in divided:
        everything = np.concatenate(parts[:count])
        step = max(tick, clock_tick(everything))
        middle = median(everything, step)
        if middle <= 0:
            raise ValueError("a ratio of medians needs times above 0")
        logs.append(_logs(parts[:count], step))
        margins.append(step / 2 / middle)
    apart = logs[0] - logs[1] if len(logs) > 1 else logs[0]
    margin = max(margins)
    if count > 1:
        # Instances of the side that has fewer of them: their pairs with the other's are not independent.
        labels = [_labels(side.instances, count) for side in sides]
        several = sorted((side for side in labels if len(set(side)) > 1), key=lambda side: len(set(side)))
        return _spread(apart, several[0] if several else labels[0]), margin
    rng = np.random.default_rng(seed)
    drawn = [np.log(np.maximum(median_draws(parts[0], DRAWS, rng), _TINY)) for parts in divided]
    low, high = _percentiles(drawn[0] - drawn[1] if len(drawn) > 1 else drawn[0])
    half = max(high - apart[0], apart[0] - low) + UNSEEN_DRIFT
    return _Spread(float(apart[0]), float(half)), margin


def _labels(instances: Sequence[int], count: int) -> Sequence[int]:
    """The instance of each of `count` rounds; a record that does not say it of each is of one instance."""
    return instances[:count] if len(instances) >= count else (0,) * count


def _logs(parts: Sequence[np.ndarray], tick: float) -> np.ndarray:
    """Logarithms of each round's median; times are positive."""
    return np.array([_log(median(part, tick)) for part in parts])


def _log(time: float) -> float:
    return math.log(max(time, _TINY))


def _hull(value: float, draws: np.ndarray) -> Interval:
    return _around(value, *_percentiles(draws))


def _percentiles(draws: np.ndarray) -> tuple[float, float]:
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(draws, (tail, 100 - tail))
    return float(low), float(high)


def _several(*sides: Timed) -> bool:
    """Whether each has more than one sample in the rounds that all of them have."""
    divided = [split_rounds(side.samples_ns, side.rounds) for side in sides]
    count = min(map(len, divided))
    return all(sum(part.size for part in parts[:count]) > 1 for parts in divided)


def _about(centre: float, half: float, known: bool = True) -> Interval:
    """From logarithms."""
    return _around(_exp(centre), _exp(centre - half), _exp(centre + half), known)


def _around(value: float, low: float, high: float, known: bool = True) -> Interval:
    return Interval(value, min(low, value), max(high, value), known)


def _exp(x: float) -> float:
    return math.exp(min(x, 700.0))
