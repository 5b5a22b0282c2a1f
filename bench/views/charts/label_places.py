"""Where the labels of points stand, in a picture and in the window: one below the other, near the points."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

# How far (points, or pixels of the window) a label may stand above or below its point. Where one of them
# would be farther away, only the points that lead have labels.
FAR = 60.0


def spread(
    wanted: Sequence[float],
    least: float,
    low: float,
    high: float,
    barred: Sequence[tuple[float, float] | None] = (),
) -> list[float] | None:
    """Positions as near as possible (least squares) to the wanted ones, in the same ascending order, at
    least `least` apart, between low and high, and outside the interval barred to each. None if there
    are none. Exact to a pixel."""
    if not wanted:
        return []
    steps = np.arange(low, high + 1e-9)
    distance = math.ceil(least)
    if not len(steps):
        return None
    costs: list[np.ndarray] = []
    for index, value in enumerate(wanted):
        cost = (steps - value) ** 2
        if barred and (out := barred[index]) is not None:
            cost[(steps > out[0]) & (steps < out[1])] = np.inf
        if costs:  # the best that the ones before can do, up to `apart` below
            before = np.full(len(steps), np.inf)
            before[distance:] = np.minimum.accumulate(costs[-1])[: max(0, len(steps) - distance)]
            cost = cost + before
        costs.append(cost)
    if not np.isfinite(costs[-1]).any():
        return None
    places: list[float] = []
    end = len(steps)
    for cost in reversed(costs):
        best = int(np.argmin(cost[:end]))
        places.append(float(steps[best]))
        end = best - distance + 1
    return places[::-1]
