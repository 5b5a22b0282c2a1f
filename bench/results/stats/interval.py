"""95 % intervals: of the median time of one contender, and of the ratio of the times of two. The method is
explained in bench.results.stats.

Samples are given in one form everywhere here:

- samples (samples_ns): times in ns of one contender, in the order in which they were taken, shape (n,).
- rounds: the index of the first sample of each round; () means that all samples are one round.
- instances: for each round the number of the instance that was timed; () means that there was one instance.

A contender's samples of one round are called its turn.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from bench.results.stats.medians import clock_tick, median, median_draws, split_rounds
from bench.results.stats.medians import quantile as quantile_of
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
    """A value with its 95 % interval, in the unit of the value (ns, or 1 for a ratio); low ≤ value ≤ high.

    known: whether low and high mean anything. One sample alone says nothing about its spread. Then `known` is
    False: show the value without its interval, and draw no verdict from it.
    """

    value: float
    low: float
    high: float
    known: bool = True

    @property
    def relative(self) -> float:
        """The distance from the value to the end of the interval that is further away, as a fraction of the
        value (0.01: "within 1 %")."""
        if self.value == 0:
            return 0.0 if self.low == self.high else math.inf
        return max(self.high - self.value, self.value - self.low) / abs(self.value)

    @property
    def inverse(self) -> Interval:
        """The interval of 1 / value. The value must be above 0."""
        return Interval(1 / self.value, 1 / self.high, 1 / self.low if self.low else math.inf, self.known)

    def __str__(self) -> str:
        if not self.known:
            return f"{self.value:.4g} (of one sample)"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


class Sampled(Protocol):
    """Something with samples in ns, in rounds, of one or several instances (see the top of this module)."""

    @property
    def samples_ns(self) -> Samples: ...
    @property
    def rounds(self) -> Sequence[int]: ...
    @property
    def instances(self) -> Sequence[int]: ...


class Timed(Sampled, Protocol):
    """A contender that can be compared, for example a Measurement or a Timing.

    quantile: which quantile of the samples is compared, from 0 to 1 (0.5: the median). load: how much other
    programs used the processor cores meanwhile (bench.results.records.TimedResult); {} means that it is not
    known.
    """

    @property
    def quantile(self) -> float: ...
    @property
    def load(self) -> Mapping[str, float]: ...


@dataclass(frozen=True)
class Side:
    """The simplest `Timed`: the samples of one contender and what belongs to them, as plain fields."""

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
    """The median of all samples with its 95 % interval, in ns. Raises ValueError if there are no samples.

    tick: the step of the clock in ns, if it is known (0: it is guessed from the samples). The interval is
    never narrower than one tick. seed: of the bootstrap, which is used only if there is a single round.

    There are two estimates: the median of all samples, which is shown, and the mean of the rounds' medians,
    for which Student's t gives an error. If rounds differ much, the first is less exact than Student's t
    says. If samples have two modes, the second is off. So the interval lies about the middle of the two, and
    their difference is added to its half-width in quadrature. With a single round the interval is that of the
    bootstrap of the median, which cannot see differences between rounds. With a single sample the interval is
    not `known`.
    """
    parts = split_rounds(samples, rounds)
    if not parts:
        raise ValueError("a median needs at least one sample")
    everything = np.concatenate(parts)
    tick = max(tick, clock_tick(everything))
    value = median(everything, tick)
    if len(parts) == 1:
        draws = median_draws(everything, DRAWS, np.random.default_rng(seed))
        interval = _containing(value, *_percentiles(draws))
    else:
        spread = _spread(_log_of_each_round(parts, tick), _instance_of_each(instances, len(parts)))
        apart = spread.centre - log(value)
        middle, half = spread.centre - apart / 2, math.hypot(spread.half, apart)
        interval = _containing(value, _exp(middle - half), _exp(middle + half))
    known = everything.size > 1
    return _containing(
        value, min(interval.low, value - tick / 2), max(interval.high, value + tick / 2), known
    )


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
    """Time of `ours` divided by time of `reference`, with its 95 % interval. Below 1, `ours` is faster.
    quantile: which quantile of the samples is compared, the median unless given. tick, seed: as in
    `median_interval`. Raises ValueError if one side has no samples, or if its median is not above 0.

    Round i of one side is paired with round i of the other, which was timed next to it. Rounds that only one
    side has are left out. The value is not the ratio of the two medians of all samples, whose error is up to
    three times as large. It is the geometric mean of the ratios of the paired rounds: what slowed down both
    sides of a round cancels. (Below the median, `_low_quantile_spread` says how rounds are put together.)
    With a single paired round the interval is that of the bootstrap, made wider by UNSEEN_DRIFT on either
    side. If one side has a single sample in the paired rounds, the interval is not `known`.
    """
    one = Side(ours, our_rounds, our_instances, quantile)
    other = Side(reference, reference_rounds, reference_instances, quantile)
    return ratio_of(one, other, seed, tick, quantile)


def ratio_of(
    one: Timed, other: Timed, seed: int = 0, tick: float = 0.0, quantile: float = MEDIAN
) -> Interval:
    """The same as `ratio_interval`, for two objects that hold their samples, rounds and instances. `quantile`
    is the argument; the attribute `quantile` of the two is not read."""
    spread, margin = sides_spread([one, other], seed, tick, quantile)
    return from_logarithms(spread.centre, max(spread.half, margin), _several_samples(one, other))


@dataclass(frozen=True)
class Spread:
    """A mean of logarithms of times or of ratios, with its 95 % interval: centre ± half. freedom: the degrees
    of freedom of Student's t.

    within: the part of the variance between the instances' means that more rounds would make smaller, 0 to
    about 1. It is 1 if there is one instance, or only one round of an instance.
    """

    centre: float
    half: float
    freedom: int = 1
    within: float = 1.0


def _spread(logs: np.ndarray, labels: Sequence[int]) -> Spread:
    """Student's t over the means of the instances, or over the rounds if all are of one instance. logs,
    labels: of each round its logarithm and its instance; at least two rounds."""
    groups = [logs[np.asarray(labels) == label] for label in sorted(set(labels))]
    if len(groups) < 2:
        return _student_spread(logs)
    means = np.array([group.mean() for group in groups])
    freedom = len(logs) - len(groups)
    between, within = float(means.var(ddof=1)), 1.0
    if between > 0 and min(len(group) for group in groups) > 1:
        pooled = sum(float(((group - group.mean()) ** 2).sum()) for group in groups) / freedom
        within = pooled * float(np.mean([1 / len(group) for group in groups])) / between
    return dataclasses.replace(_student_spread(means), within=within)


def _student_spread(values: np.ndarray, trimmed: float = 0.0) -> Spread:
    """The mean of at least two values with its half-width by Student's t. trimmed: the part left out at
    either end."""
    centre, error, freedom = mean_error(values, trimmed)
    return Spread(centre, student(freedom) * error, freedom)


def _low_quantile_spread(
    divided: Sequence[list[np.ndarray]], ratios: np.ndarray, labels: Sequence[int], quantile: float
) -> Spread:
    """The spread for a low quantile. For each instance the quantile is taken over all its samples; then the
    trimmed mean over the instances is taken. (With one instance: the same for each round, over the rounds.)

    Other programs only make a pass longer, for milliseconds or for a whole turn. A low quantile ignores the
    slow passes, unless all turns of an instance were slow. Then the trimmed mean leaves out that instance. If
    every instance has many rounds, the trimmed mean of its rounds' ratios is better: what lasted longer than
    a round slowed down both sides of it, and cancels.

    divided: for each side its rounds. ratios: for each round the logarithm of the ratio of the two quantiles.
    """
    marks = np.asarray(labels if len(set(labels)) > 1 else range(len(labels)))
    units, counts = np.unique(marks, return_counts=True)
    if len(divided) > 1 and min(counts) >= TRIMMED_FROM:
        means = [mean_error(ratios[marks == unit], THIRD)[0] for unit in units]
        return _student_spread(np.array(means), FIFTH)
    log_ratios = np.zeros(len(units))
    for parts, sign in zip(divided, (1.0, -1.0), strict=False):
        for place, unit in enumerate(units):
            own = np.concatenate([parts[number] for number in np.flatnonzero(marks == unit)])
            log_ratios[place] += sign * log(quantile_of(own, quantile))
    return _student_spread(log_ratios, FIFTH)


def sides_spread(
    sides: Sequence[Timed], seed: int, tick: float, quantile: float = MEDIAN
) -> tuple[Spread, float]:
    """The logarithm of the ratio of two sides (the first divided by the second), or of the time of a single
    side, with its spread. sides: one or two. quantile: from 0 to 0.5, or MEAN for the mean. With a single
    common round it is always the median.

    Returns the spread and a margin: half a clock tick as a fraction of the time. The half-width must not be
    taken smaller than the margin. Raises ValueError if a side has no samples, or if its median is not above
    0.
    """
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
        logs.append(_log_of_each_round(parts[:count], step, quantile))
        margins.append(step / 2 / middle)
    log_ratios = logs[0] - logs[1] if len(logs) > 1 else logs[0]
    margin = max(margins)
    if count > 1:
        # Instances of the side that has fewer of them: their pairs with the other's are not independent.
        labels = [_instance_of_each(side.instances, count) for side in sides]
        several = sorted((side for side in labels if len(set(side)) > 1), key=lambda side: len(set(side)))
        marks = several[0] if several else labels[0]
        found = _spread(log_ratios, marks)
        if quantile < MEDIAN:
            lowest = _low_quantile_spread([parts[:count] for parts in divided], log_ratios, marks, quantile)
            found = dataclasses.replace(lowest, within=found.within)
        return found, margin
    rng = np.random.default_rng(seed)
    drawn = [np.log(np.maximum(median_draws(parts[0], DRAWS, rng), TINY)) for parts in divided]
    low, high = _percentiles(drawn[0] - drawn[1] if len(drawn) > 1 else drawn[0])
    half = max(high - log_ratios[0], log_ratios[0] - low) + UNSEEN_DRIFT
    return Spread(float(log_ratios[0]), float(half)), margin


def _instance_of_each(instances: Sequence[int], count: int) -> Sequence[int]:
    """The instance of each of the first `count` rounds. If the record does not name one for each of them, all
    are of one instance."""
    return instances[:count] if len(instances) >= count else (0,) * count


def _log_of_each_round(parts: Sequence[np.ndarray], tick: float, quantile: float = MEDIAN) -> np.ndarray:
    """The logarithm of each round's median, or of another quantile, or of its mean (MEAN). Times must be
    positive."""
    if quantile == MEDIAN:
        return np.array([log(median(part, tick)) for part in parts])
    return np.array([log(quantile_of(p, quantile) if quantile < MEDIAN else float(p.mean())) for p in parts])


def log(time: float) -> float:
    """The natural logarithm of a time; of a time ≤ 0 that of the smallest positive float."""
    return math.log(max(time, TINY))


def _percentiles(draws: np.ndarray) -> tuple[float, float]:
    """The two ends of the middle 95 % of the draws."""
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(draws, (tail, 100 - tail))
    return float(low), float(high)


def _several_samples(*sides: Timed) -> bool:
    """Whether each side has more than one sample in the rounds that all sides have."""
    divided = [split_rounds(side.samples_ns, side.rounds) for side in sides]
    count = min(map(len, divided))
    return all(sum(part.size for part in parts[:count]) > 1 for parts in divided)


def from_logarithms(centre: float, half: float, known: bool = True) -> Interval:
    """The interval exp(centre − half) to exp(centre + half), from logarithms."""
    return _containing(_exp(centre), _exp(centre - half), _exp(centre + half), known)


def _containing(value: float, low: float, high: float, known: bool = True) -> Interval:
    """The interval low to high, made wider if need be so that it contains the value."""
    return Interval(value, min(low, value), max(high, value), known)


def _exp(x: float) -> float:
    """exp(x), without overflow."""
    return math.exp(min(x, 700.0))
