"""Mistakes of a normalisation followed by a pool: those of either."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from bench.judge.mistakes import Mistake, lrn, pool
from kernels.ops.lrn_pool import LrnPool


def mistakes(p: LrnPool, x: np.ndarray) -> Iterator[Mistake]:
    for fault, words, answer in lrn.mistakes(p.lrn, x):
        yield fault, words, _pooled(p, answer)
    for fault, words, answer in pool.mistakes(p.pool, lrn.normalised(p.lrn, x)):
        yield fault, f"in the pool {words}", answer


def _pooled(p: LrnPool, normal: Callable[[], np.ndarray]) -> Callable[[], np.ndarray]:
    return lambda: pool.pooled(p.pool, normal())
