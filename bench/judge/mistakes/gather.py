"""Mistakes of picking places along an axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from bench.judge.mistakes import Mistake
from kernels.ops.gather import Gather


def mistakes(p: Gather, x: np.ndarray, places: np.ndarray) -> Iterator[Mistake]:
    whole = np.where(places < 0, places + p.axis, places)

    def at(numbers: np.ndarray) -> Callable[[], np.ndarray]:
        return lambda: x[:, np.clip(numbers, 0, p.axis - 1)]

    yield "layout", "negative places are taken as the first", at(places)
    yield "layout", "the sign of negative places is lost", at(np.abs(places))
    yield "layout", "negative places are off by one", at(np.where(places < 0, whole - 1, whole))
    yield "layout", "places are counted from 1", at(whole - 1)
    yield "layout", "places are off by one further along", at(whole + 1)
    yield "layout", "places are picked in reverse order", at(whole[::-1])
    yield "layout", "the places are ignored: all are taken as they come", at(np.arange(p.count))
    yield "layout", "the first place serves all", at(np.full_like(whole, whole[0]))
