"""Mistakes of a convolution followed by a pool: those of either."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from bench.judge.mistakes import Mistake, conv, pool
from kernels.ops.conv_pool import ConvPool


def mistakes(
    p: ConvPool, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None
) -> Iterator[Mistake]:
    for fault, words, answer in conv.mistakes(p.conv, x, weight, bias):
        yield fault, words, _pooled(p, answer)
    for fault, words, answer in pool.mistakes(p.pool, conv.convolution(p.conv, x, weight, bias)):
        yield fault, f"in the pool {words}", answer


def _pooled(p: ConvPool, maps: Callable[[], np.ndarray]) -> Callable[[], np.ndarray]:
    return lambda: pool.pooled(p.pool, maps())
