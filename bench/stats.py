"""Medians, their intervals, and the one rule by which two contenders are compared.

Samples within an interleaving round share whatever the machine did at that moment, so the rounds and not the
samples are the independent units: intervals resample rounds first and samples within them second.

The bootstrap draws no samples. The k-th smallest of n values drawn with replacement from n sorted values is
the value at rank ⌈n·U⌉, U ~ Beta(k, n − k + 1) (the order statistics of uniform draws), so the exact
bootstrap distribution of a median costs one sort and a vector of Beta draws: B. Efron, "Bootstrap methods:
another look at the jackknife", Annals of Statistics 7 (1979), section 3, where the median is the worked
example.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.records import Measurement

SAME_BOUND = 0.02  # two medians within ±2 % are the same
UNQUIET = 0.05  # rounds that leave the median this uncertain are worth a warning
CONFIDENCE = 0.95
DRAWS = 2000
# With a single round nothing is known of the drift between rounds; this much is assumed (either way).
UNSEEN_DRIFT = 0.05

# 97.5 % points of Student's t for 1…10 degrees of freedom.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


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

    def __str__(self) -> str:
        if not self.known:
            return f"{self.value:.4g} (of one sample)"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def median_draws(samples: Sequence[float] | np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """`count` draws from the bootstrap distribution of the median of `samples`, float64 (count,), exact.

    ValueError on no samples.
    """
    values = np.sort(np.asarray(samples, dtype=np.float64))
    n = values.size
    if n == 0:
        raise ValueError("a median needs at least one sample")
    k = (n + 1) // 2
    lower = rng.beta(k, n - k + 1, count)
    ranks = np.clip(np.ceil(lower * n).astype(np.int64) - 1, 0, n - 1)
    if n % 2:
        return values[ranks]
    # Even n: the next order statistic, given this one, is the least of the n − k draws above it.
    upper = 1.0 - (1.0 - lower) * rng.random(count) ** (1.0 / (n - k))
    next_ranks = np.clip(np.ceil(upper * n).astype(np.int64) - 1, ranks, n - 1)
    return 0.5 * (values[ranks] + values[next_ranks])


def split_rounds(samples: Sequence[float] | np.ndarray, rounds: Sequence[int]) -> list[np.ndarray]:
    """The samples of each round; `rounds` are the indices where a round starts (() or no 0: from 0)."""
    values = np.asarray(samples, dtype=np.float64)
    starts = sorted({0, *(r for r in rounds if 0 < r < values.size)})
    return [part for part in np.split(values, starts[1:]) if part.size]


def median_interval(
    samples: Sequence[float] | np.ndarray, rounds: Sequence[int] = (), seed: int = 0
) -> Interval:
    """The median of all samples with its bootstrap 95 % interval (rounds resampled, then samples in them).

    With fewer than two rounds this is the plain bootstrap of the median; of one sample nothing is known but
    its value. ValueError on no samples.
    """
    parts = split_rounds(samples, rounds)
    if not parts:
        raise ValueError("a median needs at least one sample")
    value = float(np.median(np.concatenate(parts)))
    rng = np.random.default_rng(seed)
    if len(parts) == 1:
        draws = median_draws(parts[0], DRAWS, rng)
    else:
        draws = np.exp(_hierarchical(_log_draws(parts, rng), rng))
    return _hull(value, draws, known=_several(parts))


def ratio_interval(
    ours: Sequence[float] | np.ndarray,
    reference: Sequence[float] | np.ndarray,
    our_rounds: Sequence[int] = (),
    reference_rounds: Sequence[int] = (),
    seed: int = 0,
) -> Interval:
    """Median of `ours` over median of `reference` (below 1: ours takes less time), with a 95 % interval.

    Round i of one is paired with round i of the other, which ran next to it; rounds only one of them had are
    left out. The interval is the hull of two: the bootstrap over rounds, which knows how uncertain each
    round's medians are but is too narrow with few rounds, and Student's t over the rounds' log ratios, which
    is right with few rounds but knows nothing of the samples. Where the rounds left hold one sample of
    either side, the interval is not known. ValueError on no samples.
    """
    a, b = split_rounds(ours, our_rounds), split_rounds(reference, reference_rounds)
    if not a or not b:
        raise ValueError("a ratio of medians needs at least one sample on each side")
    count = min(len(a), len(b))
    a, b = a[:count], b[:count]
    base = float(np.median(np.concatenate(b)))
    if base <= 0 or float(np.median(np.concatenate(a))) <= 0:
        raise ValueError("a ratio of medians needs times above 0")
    value = float(np.median(np.concatenate(a))) / base
    rng = np.random.default_rng(seed)
    per_round = _log_draws(a, rng) - _log_draws(b, rng)
    known = _several(a) and _several(b)
    interval = _hull(value, np.exp(_hierarchical(per_round, rng)), known)
    if count == 1:
        return Interval(value, interval.low * (1 - UNSEEN_DRIFT), interval.high * (1 + UNSEEN_DRIFT), known)
    logs = np.log([np.median(x) / np.median(y) for x, y in zip(a, b, strict=True)])
    centre = float(logs.mean())
    half = student(count - 1) * float(logs.std(ddof=1)) / math.sqrt(count)
    low, high = _exp(centre - half), _exp(centre + half)
    return Interval(value, min(interval.low, low), max(interval.high, high))


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


def compare(ours: Measurement, reference: Measurement, seed: int = 0) -> tuple[Interval, Verdict]:
    """Ratio of median times and verdict of two measurements timed together. ValueError without samples."""
    ratio = ratio_interval(ours.samples_ns, reference.samples_ns, ours.rounds, reference.rounds, seed)
    return ratio, verdict(ratio)


def student(freedom: int) -> float:
    """97.5 % point of Student's t; above the table by the Cornish–Fisher expansion (error < 3e-3)."""
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    z = 1.959964
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2


def _log_draws(parts: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Logarithms of bootstrap medians of each round, (DRAWS, rounds); times are positive."""
    tiny = np.finfo(np.float64).tiny
    return np.log(np.maximum(np.stack([median_draws(p, DRAWS, rng) for p in parts], axis=1), tiny))


def _hierarchical(per_round: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Means over rounds drawn with replacement, (DRAWS,), of per-round draws (DRAWS, rounds)."""
    draws, count = per_round.shape
    chosen = rng.integers(0, count, (draws, count))
    return np.take_along_axis(per_round, chosen, axis=1).mean(axis=1)


def _several(parts: Sequence[np.ndarray]) -> bool:
    """Whether there is more than one sample in all."""
    return sum(part.size for part in parts) > 1


def _hull(value: float, draws: np.ndarray, known: bool) -> Interval:
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(draws, (tail, 100 - tail))
    return Interval(value, min(float(low), value), max(float(high), value), known)


def _exp(x: float) -> float:
    return math.exp(min(x, 700.0))
