"""The ratio of two values that were not timed in turns, each with its interval, and the interval of the
ratio.

What was timed in turns is compared round by round (bench.results.stats.compare). Two runs have no rounds in
common, so for each there is only its value and its interval. The interval of their ratio follows from these:
with logarithms, the distance to the lower end is √(a² + b²), where a is how far the one interval reaches down
and b how far the other reaches up (G. Y. Zou and A. Donner, "Construction of confidence limits about effect
measures: a general approach", Statistics in Medicine 27, 2008). This assumes that the two are independent. It
cannot see what differs between two runs as a whole; that is why runs are compared by their ratios to a
reference, and not by times.
"""

from __future__ import annotations

import math

from bench.results.stats import Interval


def quotient(over: Interval, under: Interval) -> Interval:
    """The one over the other. Not known where one of them is not. ValueError for what is not above 0."""
    if over.value <= 0 or under.value <= 0:
        raise ValueError("a ratio needs values above 0")
    value = over.value / under.value
    down = math.hypot(_reach(over.value, over.low), _reach(under.high, under.value))
    up = math.hypot(_reach(over.high, over.value), _reach(under.value, under.low))
    low, high = value * math.exp(-min(down, _FAR)), value * math.exp(min(up, _FAR))
    return Interval(value, min(low, value), max(high, value), over.known and under.known)


def inverse(ratio: Interval) -> Interval:
    """One over it."""
    high = 1 / ratio.low if ratio.low > 0 else math.inf
    return Interval(1 / ratio.value, 1 / ratio.high, high, ratio.known)


_FAR = 300.0  # as a logarithm, beyond which an end says nothing


def _reach(high: float, low: float) -> float:
    """How far apart two ends are, as a logarithm."""
    return _FAR if low <= 0 or not math.isfinite(high) else math.log(high / low)
