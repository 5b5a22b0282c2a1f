"""Element-wise arithmetic: what its kernels are told."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernels.ops._axes import axes, merge_axes
from kernels.ops._base import ITEMSIZE, Division, Params, Scalar, Shape, activation_code, int32

BINARY_KINDS = ("add", "sub", "mul", "div")
_Ints = tuple[int, ...]
# Shapes and strides of both operands: dense, a column, a constant a channel, a scalar, rows of fours.
_BROADCASTS: tuple[tuple[_Ints, _Ints, _Ints], ...] = (
    ((37,), (1,), (1,)),
    ((5, 7), (7, 1), (1, 0)),
    ((2, 3, 8), (24, 8, 1), (0, 1, 0)),
    ((45,), (1,), (0,)),
    ((6, 12), (0, 1), (12, 1)),
)


@dataclass(frozen=True)
class Binary(Params):
    """Element-wise arithmetic with broadcasting, `kind` one of BINARY_KINDS, then `activation`.

    Tensors in order: a, b; y of `shape`. `strides_a` and `strides_b` are elements a step along each axis of
    `shape` (0 where that operand is broadcast).
    """

    op: ClassVar[str] = "binary"
    struct: ClassVar[str] = "index_t size, dims[6], strides_a[6], strides_b[6]; int kind, activation"
    most_inputs: ClassVar[int] = 2
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {"kind": ("BINARY", BINARY_KINDS)}

    kind: str
    shape: tuple[int, ...]
    strides_a: tuple[int, ...]
    strides_b: tuple[int, ...]
    activation: str | None = None
    dtype: str = "float32"

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def flops(self) -> int:
        return self.size

    @property
    def nbytes(self) -> int:
        def operand(strides: tuple[int, ...]) -> int:
            return math.prod(d for d, s in zip(self.shape, strides, strict=True) if s)

        return (operand(self.strides_a) + operand(self.strides_b) + self.size) * ITEMSIZE[self.dtype]

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(
            tuple(d if s else 1 for d, s in zip(self.shape, strides, strict=True))
            for strides in (self.strides_a, self.strides_b)
        )

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.shape

    @property
    def rows(self) -> int | None:
        alone = len(self.shape) > 1 and (self.strides_a[0] or self.strides_b[0])
        return self.shape[0] if alone else None

    def _of_rows(self, count: int) -> Binary:
        return replace(self, shape=(count, *self.shape[1:]))

    def has_rows(self, place: int) -> bool:
        return bool((self.strides_a, self.strides_b)[place][0])

    def walks(self) -> tuple[list[int], list[int], list[int]]:
        """Sizes of y's axes after merging, and the strides of a and b along them."""
        dims, (a, b) = merge_axes(self.shape, (self.strides_a, self.strides_b))
        return dims, a, b

    def scalars(self) -> tuple[Scalar, ...]:
        tail = int32(BINARY_KINDS.index(self.kind), activation_code(self.activation))
        return (np.int64(self.size), *axes(self, *self.walks()), *tail)

    @property
    def division(self) -> Division:
        leading = tuple(strides[0] if strides else 0 for strides in (self.strides_a, self.strides_b))
        length = self.shape[0] if self.shape else 1
        return Division(length, leading, math.prod(self.shape[1:]), self._of_rows)

    def small_shapes(self) -> Iterator[Shape]:
        for dims, a, b in _BROADCASTS:
            yield Shape("size", replace(self, shape=dims, strides_a=a, strides_b=b))
        if self.dtype == "float32":
            dense = replace(self, shape=(37,), strides_a=(1,), strides_b=(1,))
            yield Shape("activation", replace(dense, activation="tanh"))
