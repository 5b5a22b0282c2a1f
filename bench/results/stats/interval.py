"""Intervals of a quantile of samples, and of the ratio of two contenders (bench.results.stats says how)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from bench.results.stats.medians import clock_tick, median, median_draws, split_rounds
from bench.results.stats.medians import quantile as part_of
from bench.results.stats.student import CONFIDENCE, FIFTH, THIRD, TRIMMED_FROM, mean_error, student

DRAWS = 2000
# With a single round nothing is known of the drift between rounds; this much is assumed (either way).
UNSEEN_DRIFT = 0.05
MEDIAN = 0.5
MEAN = math.nan  # in place of a quantile
TINY = np.finfo(np.float64).tiny

Samples = Sequence[float] | np.ndarray


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


class Sampled(Protocol):
    """What has samples in rounds, maybe of several instances."""

    @property
    def samples_ns(self) -> Samples: ...
    @property
    def rounds(self) -> Sequence[int]: ...
    @property
    def instances(self) -> Sequence[int]: ...


class Timed(Sampled, Protocol):
    """What is compared: a Measurement, a Timing, or what else says by which quantile of its turns, and who
    used the machine meanwhile (bench.results.stats.medians; {}: not known)."""

    @property
    def quantile(self) -> float: ...
    @property
    def load(self) -> Mapping[str, float]: ...


@dataclass(frozen=True)
class Side:
    """Samples of one contender in their rounds, the instance of each round, the quantile that a turn is
    summed up by, and who used the machine."""

    samples_ns: Samples
    rounds: Sequence[int]
    instances: Sequence[int]
    quantile: float = MEDIAN
    load: Mapping[str, float] = field(default_factory=dict)


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
        draws = median_draws(everything, DRAWS, np.random.default_rng(seed))
        interval = _around(value, *_percentiles(draws))
    else:
        spread = _spread(_logs(parts, tick), _labels(instances, len(parts)))
        apart = spread.centre - log(value)
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
    quantile: float = MEDIAN,
) -> Interval:
    """Median time of `ours` over that of `reference` (below 1: ours takes less), with a 95 % interval; or of
    another `quantile` of their turns.

    Round i of one is paired with round i of the other, which ran next to it; rounds only one of them had are
    left out. The value is the geometric mean of the rounds' ratios and not the ratio of the medians of all:
    what a round did to both is divided out of it, where the other errs up to three times as much. Where the
    rounds left hold one sample of either side, the interval is not known. ValueError on no samples.
    """
    one = Side(ours, our_rounds, our_instances, quantile)
    other = Side(reference, reference_rounds, reference_instances, quantile)
    return ratio_of(one, other, seed, tick, quantile)


def ratio_of(
    one: Timed, other: Timed, seed: int = 0, tick: float = 0.0, quantile: float = MEDIAN
) -> Interval:
    """As `ratio_interval`, of two that say their rounds and instances."""
    spread, margin = sides_spread([one, other], seed, tick, quantile)
    return about(spread.centre, max(spread.half, margin), _several(one, other))


@dataclass(frozen=True)
class Spread:
    """A mean with the half-width of its interval, both of logarithms, and its degrees of freedom; within:
    which part of the means' variance is that of the rounds within an instance (1 where there is one instance,
    or a round of each)."""

    centre: float
    half: float
    freedom: int = 1
    within: float = 1.0


def _spread(logs: np.ndarray, labels: Sequence[int]) -> Spread:
    """Student's t over instances, or over rounds where all are of one instance; two rounds at least."""
    groups = [logs[np.asarray(labels) == label] for label in sorted(set(labels))]
    if len(groups) < 2:
        return _of(logs)
    means = np.array([group.mean() for group in groups])
    freedom = len(logs) - len(groups)
    between, within = float(means.var(ddof=1)), 1.0
    if between > 0 and min(len(group) for group in groups) > 1:
        pooled = sum(float(((group - group.mean()) ** 2).sum()) for group in groups) / freedom
        within = pooled * float(np.mean([1 / len(group) for group in groups])) / between
    return dataclasses.replace(_of(means), within=within)


def _of(values: np.ndarray, trimmed: float = 0.0) -> Spread:
    centre, error, freedom = mean_error(values, trimmed)
    return Spread(centre, student(freedom) * error, freedom)


def _low(
    divided: Sequence[list[np.ndarray]], ratios: np.ndarray, labels: Sequence[int], quantile: float
) -> Spread:
    """The trimmed mean over instances (of one: over rounds) of the quantile of all samples that each has.

    What other programs add to a pass is one-sided, for milliseconds or for whole turns. A low quantile of the
    turns of an instance sheds it unless all of them were slow, and then that instance is among those that
    the trimmed mean leaves out. Of an instance with many rounds the trimmed mean of their ratios sheds more:
    what lasted for longer than a round was beside both sides of it.
    ratios: logarithms, of each round by this quantile."""
    marks = np.asarray(labels if len(set(labels)) > 1 else range(len(labels)))
    units, counts = np.unique(marks, return_counts=True)
    if len(divided) > 1 and min(counts) >= TRIMMED_FROM:
        means = [mean_error(ratios[marks == unit], THIRD)[0] for unit in units]
        return _of(np.array(means), FIFTH)
    apart = np.zeros(len(units))
    for parts, sign in zip(divided, (1.0, -1.0), strict=False):
        for place, unit in enumerate(units):
            own = np.concatenate([parts[number] for number in np.flatnonzero(marks == unit)])
            apart[place] += sign * log(part_of(own, quantile))
    return _of(apart, FIFTH)


def sides_spread(
    sides: Sequence[Timed], seed: int, tick: float, quantile: float = MEDIAN
) -> tuple[Spread, float]:
    """The logarithm of the ratio of two (of one alone: of its time) with its spread, and the clock's tick as
    the least half-width of it. quantile: of the turns, or MEAN."""
    divided = [split_rounds(side.samples_ns, side.rounds) for side in sides]
    count = min(map(len, divided))
    if not count:
        raise ValueError("a ratio of medians needs at least one sample on each side")
    if count == 1:
        quantile = MEDIAN  # the bootstrap is of it
    logs, margins = [], []
    for parts in divided:
        everything = np.concatenate(parts[:count])
        step = max(tick, clock_tick(everything))
        middle = median(everything, step)
        if middle <= 0:
            raise ValueError("a ratio of medians needs times above 0")
        logs.append(_logs(parts[:count], step, quantile))
        margins.append(step / 2 / middle)
    apart = logs[0] - logs[1] if len(logs) > 1 else logs[0]
    margin = max(margins)
    if count > 1:
        # Instances of the side that has fewer of them: their pairs with the other's are not independent.
        labels = [_labels(side.instances, count) for side in sides]
        several = sorted((side for side in labels if len(set(side)) > 1), key=lambda side: len(set(side)))
        marks = several[0] if several else labels[0]
        found = _spread(apart, marks)
        if quantile < MEDIAN:
            lowest = _low([parts[:count] for parts in divided], apart, marks, quantile)
            found = dataclasses.replace(lowest, within=found.within)
        return found, margin
    rng = np.random.default_rng(seed)
    drawn = [np.log(np.maximum(median_draws(parts[0], DRAWS, rng), TINY)) for parts in divided]
    low, high = _percentiles(drawn[0] - drawn[1] if len(drawn) > 1 else drawn[0])
    half = max(high - apart[0], apart[0] - low) + UNSEEN_DRIFT
    return Spread(float(apart[0]), float(half)), margin


def _labels(instances: Sequence[int], count: int) -> Sequence[int]:
    """The instance of each of `count` rounds; a record that does not say it of each is of one instance."""
    return instances[:count] if len(instances) >= count else (0,) * count


def _logs(parts: Sequence[np.ndarray], tick: float, quantile: float = MEDIAN) -> np.ndarray:
    """Logarithms of each round's median, or of another quantile, or of its MEAN; times are positive."""
    if quantile == MEDIAN:
        return np.array([log(median(part, tick)) for part in parts])
    return np.array([log(part_of(p, quantile) if quantile < MEDIAN else float(p.mean())) for p in parts])


def log(time: float) -> float:
    return math.log(max(time, TINY))


def _percentiles(draws: np.ndarray) -> tuple[float, float]:
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(draws, (tail, 100 - tail))
    return float(low), float(high)


def _several(*sides: Timed) -> bool:
    """Whether each has more than one sample in the rounds that all of them have."""
    divided = [split_rounds(side.samples_ns, side.rounds) for side in sides]
    count = min(map(len, divided))
    return all(sum(part.size for part in parts[:count]) > 1 for parts in divided)


def about(centre: float, half: float, known: bool = True) -> Interval:
    """From logarithms."""
    return _around(_exp(centre), _exp(centre - half), _exp(centre + half), known)


def _around(value: float, low: float, high: float, known: bool = True) -> Interval:
    return Interval(value, min(low, value), max(high, value), known)


def _exp(x: float) -> float:
    return math.exp(min(x, 700.0))
