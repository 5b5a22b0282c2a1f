"""What operators share that go through axes: along one of them, element by element, or with NumPy's
broadcasting.

Element-wise kernels take MAX_RANK axes; axes that can be walked as one are merged first. Element counts and
strides may pass 2³¹, so they are int64.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from kernels.errors import KernelError
from kernels.ops._base import MAX_RANK, Division, Params, Scalar, Shape


def merge_axes(dims: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Drop axes of length 1 and merge neighbours that every operand walks as one axis: the same elements in
    the same order with the fewest axes. Strides are in elements."""
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
    """Sizes and strides, filled up in front to MAX_RANK axes, for kernels that take a fixed number."""
    if len(dims) > MAX_RANK:
        raise KernelError(f"{p} has {len(dims)} axes after merging, and {p.op} takes up to {MAX_RANK}")
    rows = [lead(dims, 1)] + [lead(walk, 0) for walk in walks]
    return tuple(np.int64(v) for row in rows for v in row)


def lead(values: Sequence[int], fill: int) -> list[int]:
    """Filled up in front to MAX_RANK."""
    return [fill] * (MAX_RANK - len(values)) + list(values)


def contiguous(dims: Sequence[int]) -> list[int]:
    """The strides of a dense tensor, in elements."""
    return [math.prod(dims[i + 1 :]) for i in range(len(dims))]


# ---------------------------------------------------------------------------------------------------  along


class Along(Params):
    """Params along one axis: each of `outer` is a row of its own."""

    units: ClassVar[str] = "outer"

    outer: int
    axis: int
    inner: int

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.outer, self.axis, self.inner),)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.outer, self.axis, self.inner)


# ------------------------------------------------------------------------------------------------  elements


@dataclass(frozen=True)
class OneByOne(Params):
    """Tensors in order: x (size,); y (size,)."""

    units: ClassVar[str] = "size"

    if TYPE_CHECKING:  # a field of the record, as Params.dtype

        @property
        def size(self) -> int:
            """Elements."""

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.size,),)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def rows(self) -> int | None:
        return None

    @property
    def division(self) -> Division:
        return Division(self.size, (1,), 1, self._of_rows)

    def small_shapes(self) -> Iterator[Shape]:
        return (Shape("size", self._of_rows(size)) for size in (1, 7, 1030))


# -----------------------------------------------------------------------------------------------  broadcast

# What operators share that take an element each of several operands, with NumPy's broadcasting.


Ints = tuple[int, ...]
# Shapes and strides of two operands: dense, a column, a constant a channel, a scalar, rows of fours.
BROADCASTS: tuple[tuple[Ints, Ints, Ints], ...] = (
    ((37,), (1,), (1,)),
    ((5, 7), (7, 1), (1, 0)),
    ((2, 3, 8), (24, 8, 1), (0, 1, 0)),
    ((45,), (1,), (0,)),
    ((6, 12), (0, 1), (12, 1)),
)


@dataclass(frozen=True)
class Broadcast(Params):
    """y has `shape`; strides of an operand are in elements along each axis of `shape`, 0 where it is
    broadcast."""

    if TYPE_CHECKING:  # a field of the record, as Params.dtype

        @property
        def shape(self) -> Ints:
            """Shape of y."""

    @property
    @abstractmethod
    def strides(self) -> tuple[Ints, ...]:
        """The strides of each operand."""

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def flops(self) -> int:
        return self.size

    @property
    def input_shapes(self) -> tuple[Ints, ...]:
        return tuple(
            tuple(d if s else 1 for d, s in zip(self.shape, strides, strict=True)) for strides in self.strides
        )

    @property
    def output_shape(self) -> Ints:
        return self.shape

    @property
    def rows(self) -> int | None:
        alone = len(self.shape) > 1 and any(strides[0] for strides in self.strides)
        return self.shape[0] if alone else None

    def _of_rows(self, count: int) -> Any:
        return replace(self, shape=(count, *self.shape[1:]))  # type: ignore[call-arg]

    def has_rows(self, place: int) -> bool:
        return bool(self.strides[place][0])

    def walks(self) -> tuple[list[int], list[list[int]]]:
        """The sizes of y's axes after merging, and the strides of the operands along them."""
        return merge_axes(self.shape, self.strides)

    def places(self) -> tuple[Scalar, ...]:
        """The first members of its struct: number of elements, sizes and strides."""
        dims, walks = self.walks()
        return (np.int64(self.size), *axes(self, dims, *walks))

    @property
    def division(self) -> Division:
        leading = tuple(strides[0] if strides else 0 for strides in self.strides)
        length = self.shape[0] if self.shape else 1
        return Division(length, leading, math.prod(self.shape[1:]), self._of_rows)

    def small_shapes(self) -> Iterator[Shape]:
        for dims, a, b in BROADCASTS:
            steps = {"strides_a": a, "strides_b": b}
            yield Shape("size", replace(self, shape=dims, **steps))  # type: ignore[call-arg]
