"""Axes that can be walked as one: element-wise kernels take MAX_RANK of them, the others are merged first.

Element counts and strides, which can pass 2³¹, travel as int64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kernels.errors import KernelError
from kernels.ops._base import MAX_RANK, Params


def merge_axes(dims: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Drop axes of one element and merge neighbours that every operand walks as one: the same elements in the
    same order with the fewest axes. Strides are elements a step."""
    out: list[int] = []
    walks: list[list[int]] = [[] for _ in strides]
    for axis, size in enumerate(dims):
        if size == 1:
            continue
        steps = [s[axis] for s in strides]
        if out and all(walk[-1] == step * size for walk, step in zip(walks, steps, strict=True)):
            out[-1] *= size
            for walk, step in zip(walks, steps, strict=True):
                walk[-1] = step
        else:
            out.append(size)
            for walk, step in zip(walks, steps, strict=True):
                walk.append(step)
    return out, walks


def axes(p: Params, dims: Sequence[int], *walks: Sequence[int]) -> tuple[np.int64, ...]:
    """Sizes and strides filled up in front to MAX_RANK axes, for kernels that take a fixed number of them."""
    if len(dims) > MAX_RANK:
        raise KernelError(f"{p} has {len(dims)} axes after merging, and {p.op} takes up to {MAX_RANK}")
    rows = [lead(dims, 1)] + [lead(walk, 0) for walk in walks]
    return tuple(np.int64(v) for row in rows for v in row)


def lead(values: Sequence[int], fill: int) -> list[int]:
    """Filled up in front to MAX_RANK."""
    return [fill] * (MAX_RANK - len(values)) + list(values)


def contiguous(dims: Sequence[int]) -> list[int]:
    """Elements a step along each axis of a dense tensor."""
    return [math.prod(dims[i + 1 :]) for i in range(len(dims))]
