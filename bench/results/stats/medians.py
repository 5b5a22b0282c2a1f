"""The median of samples: its bootstrap, its rounds, and what it means on a clock with coarse ticks.

The bootstrap of a median draws no samples. The k-th smallest of n values drawn with replacement from n sorted
values is the value at rank ⌈n·U⌉, U ~ Beta(k, n − k + 1) (the order statistics of uniform draws), so the
exact bootstrap distribution of a median costs one sort and a vector of Beta draws: B. Efron, "Bootstrap
methods: another look at the jackknife", Annals of Statistics 7 (1979), section 3, where the median is the
worked example.

A clock with coarse ticks gives many equal samples, and their median does not say where between two ticks the
time lies. Then the median is that of grouped data (interpolated among the samples at the middle tick), and no
interval from bench.results.stats is narrower than the tick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

ROUNDING = 1e-12  # of a value, that arithmetic may have changed it by


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


def clock_tick(samples: Sequence[float] | np.ndarray) -> float:
    """The step of the clock that samples were read from, where it shows: the smallest difference among them
    if some are equal; 0 where none are (the clock is finer than they vary) or all (nothing is seen of it),
    and where it is larger than the least of them, which would then be less than one tick."""
    values, counts = np.unique(np.asarray(samples, dtype=np.float64), return_counts=True)
    if values.size < 2 or counts.max() < 2:
        return 0.0
    step = float(np.diff(values).min())
    return step if step <= values[values > 0].min() * (1 + ROUNDING) else 0.0


def median(samples: Sequence[float] | np.ndarray, tick: float = 0.0) -> float:
    """The median; of samples rounded to multiples of `tick` that of grouped data: each stands for
    ± tick / 2, and within the tick that holds the middle they are taken to lie evenly."""
    values = np.sort(np.asarray(samples, dtype=np.float64))
    middle = float(values[(values.size - 1) // 2] + values[values.size // 2]) / 2
    if tick <= ROUNDING * abs(middle):  # no clock's, but what arithmetic made of equal samples
        return middle
    nearest = float(values[np.argmin(np.abs(values - middle))])
    low, high = nearest - tick / 2, nearest + tick / 2
    if not low <= middle <= high:  # between two samples that are further apart than the clock explains
        return middle
    below, within = int((values <= low).sum()), int(((values > low) & (values <= high)).sum())
    return float(np.clip(low + tick * (values.size / 2 - below) / within, low, high))


def quantile(samples: Sequence[float] | np.ndarray, part: float) -> float:
    """The value below which this part of the samples lies, between two of them in proportion (definition 7 of
    R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American Statistician 50,
    1996): np.quantile, ten times as fast for few samples."""
    values = np.sort(np.asarray(samples, dtype=np.float64))
    place = part * (values.size - 1)
    below = int(place)
    above = min(below + 1, values.size - 1)
    return float(values[below] + (place - below) * (values[above] - values[below]))


# Of all cores, that other programs and the machine below a virtual one may have used while a contender had
# its turns. Where they use more than this, no quantile of a turn is free of them: docs/trust.md, "What
# other programs add on the host's clock", says why.
MOST_SHARE = 0.6


def overloaded(load: Mapping[str, float]) -> str:
    """Why nothing is decided on such a machine, as a sentence without a full stop; "" where something may be.
    load: of bench.results.records.Telemetry."""
    cores, used = load.get("cores", 0.0), used_by_others(load)
    if not used > MOST_SHARE * cores > 0:
        return ""
    return f"not decided: other programs used {used:.1f} of {cores:.0f} cores while this was measured"


def used_by_others(load: Mapping[str, float]) -> float:
    """How many cores other programs used, and the machine below a virtual one took."""
    wall = load.get("wall_s", 0.0)
    return (load.get("others_s", 0.0) + load.get("stolen_s", 0.0)) / wall if wall else 0.0
