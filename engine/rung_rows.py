"""Batches that repeat a few rows, stored as these few: the inputs that the judge gives a kernel.

A row is what a kernel computes independently of the others: an image, a row of a matrix product or of a
softmax. At any batch size a few distinct rows and their answers are enough; which row lies where is random.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CHUNK_NBYTES = 1 << 20  # compared at once: little enough to stay in the caches


@dataclass(frozen=True, eq=False)
class Rows:
    """An array whose row i is `distinct[index[i]]`; `np.asarray` makes the whole array. shape: of the whole;
    it may have axes of 1 in front of the rows' axis."""

    distinct: np.ndarray
    index: np.ndarray
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype:
        return self.distinct.dtype

    @property
    def row_nbytes(self) -> int:
        return math.prod(self.distinct.shape[1:]) * self.distinct.itemsize

    @property
    def nbytes(self) -> int:
        return len(self.index) * self.row_nbytes

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        whole = self.distinct[self.index].reshape(self.shape)
        return whole if dtype is None else whole.astype(dtype)

    def at(self, places: np.ndarray) -> np.ndarray:
        """The elements at these flat places of the whole array, without making it."""
        row, inside = np.divmod(places, math.prod(self.distinct.shape[1:]))
        return self.distinct.reshape(len(self.distinct), -1)[self.index[row], inside]


Given = np.ndarray | Rows
"""An input of a rung, whole or as the few rows that it repeats."""


def bytes_of(array: np.ndarray) -> np.ndarray:
    """The bytes of an array, as uint8."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of the same size have the same bytes."""
    left, right = bytes_of(a), bytes_of(b)
    whole = left.size // 8 * 8
    for start in range(0, whole, CHUNK_NBYTES):
        part = slice(start, min(start + CHUNK_NBYTES, whole))
        if (left[part].view(np.uint64) != right[part].view(np.uint64)).any():
            return False
    return left[whole:].tobytes() == right[whole:].tobytes()


def changed(held: np.ndarray, given: Given, start: int = 0) -> tuple[int, int] | None:
    """Where bytes that were read differ from an input. held: the bytes, which begin at byte `start` of the
    array; given: the input. Returns the first differing byte of the array and how many differ; None if all
    are the same."""
    first, count = -1, 0
    for at, expected in _stretches(given, start, start + held.size):
        part = held[at - start : at - start + expected.size]
        if not same_bytes(part, expected):
            wrong = np.flatnonzero(part != expected)
            first = at + int(wrong[0]) if first < 0 else first
            count += wrong.size
    return (first, count) if count else None


def _stretches(given: Given, start: int, stop: int) -> list[tuple[int, np.ndarray]]:
    """The bytes from start to stop as (place, bytes), one after the other, without copying."""
    if isinstance(given, np.ndarray):
        return [(start, bytes_of(given)[start:stop])]
    each, stretches = given.row_nbytes, []
    while start < stop:
        row, inside = divmod(start, each)
        end = min(stop, (row + 1) * each)
        stretches.append((start, bytes_of(given.distinct[given.index[row]])[inside : inside + end - start]))
        start = end
    return stretches


def blocks(nbytes: int, whole: bool, random: np.random.Generator, each: int, count: int) -> list[slice]:
    """The parts of an array that are checked: all of it if `whole` or if it is small; else its two ends and
    `count` parts at random places. each: bytes of a part."""
    if whole or nbytes <= (count + 2) * each:
        return [slice(start, min(start + each, nbytes)) for start in range(0, nbytes, each)]
    starts = {0, nbytes - each, *random.integers(0, nbytes - each, count).tolist()}
    return [slice(start, start + each) for start in sorted(starts)]


def picked(rows: slice | Sequence[int] | np.ndarray, count: int) -> np.ndarray:
    """The rows as indices, out of `count` rows."""
    return np.arange(count)[rows] if isinstance(rows, slice) else np.asarray(rows, np.int64)
