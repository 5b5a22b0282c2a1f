"""Axes permuted: what its kernels are told."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernels.ops._axes import axes, contiguous, merge_axes
from kernels.ops._base import Division, Params, Scalar, Shape, undivided

_Ints = tuple[int, ...]
_TURNS: tuple[tuple[_Ints, _Ints], ...] = (
    ((37, 45), (1, 0)),
    ((3, 9, 10), (2, 0, 1)),
    ((2, 3, 4, 5), (0, 2, 1, 3)),
)


@dataclass(frozen=True)
class Transpose(Params):
    """Axes permuted: y's axis i is x's axis perm[i]. `shape` is x's."""

    op: ClassVar[str] = "transpose"
    struct: ClassVar[str] = "index_t size, dims[6], strides[6]"
    shape: tuple[int, ...]
    perm: tuple[int, ...]
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        return 0

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.shape,)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return tuple(self.shape[axis] for axis in self.perm)

    @property
    def rows(self) -> int | None:
        return None

    def _of_rows(self, count: int) -> Transpose:
        return replace(self, shape=(count, *self.shape[1:]))

    def walks(self) -> tuple[list[int], list[int]]:
        """Sizes of y's axes after merging, and the strides of x along them."""
        strides = contiguous(self.shape)
        dims, (source,) = merge_axes([self.shape[a] for a in self.perm], ([strides[a] for a in self.perm],))
        return dims, source

    def scalars(self) -> tuple[Scalar, ...]:
        return (np.int64(math.prod(self.shape)), *axes(self, *self.walks()))

    @property
    def division(self) -> Division:
        if self.perm[:1] != (0,):
            return undivided(self)
        inner = math.prod(self.shape[1:])
        return Division(self.shape[0], (inner,), inner, self._of_rows)

    def small_shapes(self) -> Iterator[Shape]:
        return (Shape("size", replace(self, shape=dims, perm=perm)) for dims, perm in _TURNS)
