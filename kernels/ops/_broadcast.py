"""What operators share that take an element each of several operands, with NumPy's broadcasting."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.ops._axes import axes, merge_axes
from kernels.ops._base import ITEMSIZE, Division, Params, Scalar, Shape

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
    """y of `shape`; the strides of an operand are elements a step along each axis of `shape` (0 where it is
    broadcast)."""

    if TYPE_CHECKING:  # a field of the record, as Params.dtype

        @property
        def shape(self) -> Ints:
            """Shape of y."""

    @property
    @abstractmethod
    def strides(self) -> tuple[Ints, ...]:
        """Of each operand."""

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def flops(self) -> int:
        return self.size

    @property
    def nbytes(self) -> int:
        read = sum(
            math.prod(shape) * ITEMSIZE[dtype]
            for shape, dtype in zip(self.input_shapes, self.input_dtypes, strict=True)
        )
        return read + self.size * ITEMSIZE[self.out_dtype]

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
        """Sizes of y's axes after merging, and the strides of the operands along them."""
        return merge_axes(self.shape, self.strides)

    def places(self) -> tuple[Scalar, ...]:
        """The first members of its struct: elements, sizes and strides."""
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
