"""How certain a counted rate is: the exact one-sided bounds of C. J. Clopper and E. S. Pearson ("The use of
confidence or fiducial limits illustrated in the case of the binomial", Biometrika 26, 1934); and for many at
once the interval of E. B. Wilson ("Probable inference, the law of succession, and statistical inference",
Journal of the American Statistical Association 22, 1927), which needs no sum."""

from __future__ import annotations

import math
from collections.abc import Callable

CONFIDENCE = 0.95
_TWO_SIDED = 1.959963984540054  # deviations of a normal distribution between which 95 % of it lie


def at_least(hits: int, of: int, confidence: float = CONFIDENCE) -> float:
    """The rate below which `hits` or more of `of` would be less likely than 1 − confidence."""
    return 0.0 if hits == 0 else _where(lambda rate: _tail(hits, of, rate) >= 1 - confidence)


def at_most(hits: int, of: int, confidence: float = CONFIDENCE) -> float:
    """The rate above which `hits` or fewer of `of` would be less likely than 1 − confidence."""
    return 1.0 - at_least(of - hits, of, confidence)


def interval(rate: float, of: int) -> tuple[float, float]:
    """The two-sided interval of a rate that was counted among `of`, at 95 %."""
    if of < 1:
        return 0.0, 1.0
    square = _TWO_SIDED**2 / of
    middle = (rate + square / 2) / (1 + square)
    half = _TWO_SIDED * math.sqrt(rate * (1 - rate) / of + square / (4 * of)) / (1 + square)
    # All or none are ends in closed form, which rounding misses.
    return (middle - half if rate > 0 else 0.0), (middle + half if rate < 1 else 1.0)


def _tail(hits: int, of: int, rate: float) -> float:
    """Probability of `hits` or more of `of`."""
    if rate <= 0.0 or rate >= 1.0:
        return float(rate >= 1.0)
    whole = math.lgamma(of + 1)
    return math.fsum(
        math.exp(
            whole
            - math.lgamma(k + 1)
            - math.lgamma(of - k + 1)
            + k * math.log(rate)
            + (of - k) * math.log1p(-rate)
        )
        for k in range(hits, of + 1)
    )


def _where(reached: Callable[[float], bool]) -> float:
    """The least rate at which `reached` holds, which it does from there on; by bisection."""
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
