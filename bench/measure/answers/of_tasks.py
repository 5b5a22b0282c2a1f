"""The inputs of a task, drawn as its file says, and its answers in the order in which they are compared."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels import expressions
from kernels.ops import Params
from kernels.tasks import TaskParams
from kernels.tasks.spec import Draw, whole

if TYPE_CHECKING:
    from bench.measure.answers.samples import Sample

EMPTY_ROWS = 0.2  # of rows between offsets, where there are several


def drawn(p: TaskParams, random: np.random.Generator) -> tuple[np.ndarray, ...]:
    """New inputs of a task."""
    return tuple(
        _values(given.draw, shape, p.sizes, random).astype(given.type)
        for given, shape in zip(p.task.spec.input, p.input_shapes, strict=True)
    )


def timed(p: TaskParams) -> list[TaskParams]:
    """The task in all the sizes that its kernels are timed on."""
    return [type(p)(**sizes) for sizes in p.task.spec.time]


def _values(
    draw: Draw, shape: tuple[int, ...], sizes: dict[str, int], random: np.random.Generator
) -> np.ndarray:
    if draw.kind == "normal":
        values = random.standard_normal(shape, np.float32)
        return np.float32(draw.mean) + np.float32(draw.std) * values
    if draw.kind == "uniform":
        return random.uniform(float(draw.low), float(draw.high), shape)
    if draw.kind == "integers":
        low, high = (expressions.value(whole(side), sizes) for side in (draw.low, draw.high))
        return random.integers(low, high, shape)
    if draw.kind == "permutation":
        return random.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)
    return _offsets(shape[-1], expressions.value(draw.total, sizes), random) + np.zeros(shape, np.int64)


def _offsets(count: int, total: int, random: np.random.Generator) -> np.ndarray:
    """From 0 to total, never falling: rows of very different lengths, some of them empty."""
    rows = count - 1
    shares = random.exponential(1.0, max(1, rows)) ** 2
    if rows > 1:
        shares[random.random(rows) < EMPTY_ROWS] = 0.0
        shares[random.integers(rows)] += 1.0  # so that there is one that has something
    ends = np.floor(np.cumsum(shares) / shares.sum() * total).astype(np.int64)
    ends[-1] = total
    return np.concatenate([[0], ends])[:count]


def ordered(p: Params) -> bool:
    """Whether an answer's elements have their places: else it is compared in an order of their own."""
    return not isinstance(p, TaskParams) or p.task.spec.output[0].compare == "close"


def in_order(got: np.ndarray, sample: Sample) -> tuple[np.ndarray, Sample]:
    """An answer and the right one in the order in which they are compared: where a task says `sorted`, each
    row by size; where it says `set`, all rows of the last axis by theirs."""
    if ordered(sample.params):
        return got, sample
    expected = sample.expected.reshape(got.shape)
    return sorted_(sample.params, got), replace(sample, expected=sorted_(sample.params, expected))


def sorted_(p: Params, values: np.ndarray) -> np.ndarray:
    """See in_order; the values as they are where their places count."""
    if ordered(p):
        return values
    compare: Any = p.task.spec.output[0].compare if isinstance(p, TaskParams) else "close"
    if compare == "sorted" or values.ndim < 2:
        return np.sort(values, axis=-1)
    rows = values.reshape(-1, values.shape[-1])
    return rows[np.lexsort(rows.T[::-1])].reshape(values.shape)


def strangers(p: Params, found: np.ndarray, right: np.ndarray, near: float) -> np.ndarray:
    """Which of some values of an answer whose order is open are none of the right one's, by more than
    `near`."""
    known = np.sort(right.reshape(-1).astype(np.float64))
    values = found.astype(np.float64)
    at = np.clip(np.searchsorted(known, values), 1, max(1, known.size - 1))
    left, above = known[at - 1], known[np.minimum(at, known.size - 1)]
    with np.errstate(invalid="ignore"):
        return np.asarray(~(np.minimum(np.abs(values - left), np.abs(values - above)) <= near))
