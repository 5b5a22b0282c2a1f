"""A choice between two operands, element by element: what its kernels are told."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from kernels.ops._axes import BROADCASTS, Broadcast
from kernels.ops._base import ITEMSIZE, Scalar, Shape


@dataclass(frozen=True)
class Where(Broadcast):
    """a where the condition is true, b elsewhere, with broadcasting.

    Tensors in order: condition of bool; a, b of `dtype`; y of `shape`. Strides as of Binary, `strides_c` the
    condition's.
    """

    op: ClassVar[str] = "where"
    struct: ClassVar[str] = "index_t size, dims[6], strides_c[6], strides_a[6], strides_b[6]"
    most_inputs: ClassVar[int] = 3

    shape: tuple[int, ...]
    strides_c: tuple[int, ...]
    strides_a: tuple[int, ...]
    strides_b: tuple[int, ...]
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        return 0

    @property
    def input_dtypes(self) -> tuple[str, ...]:
        return "bool", self.dtype, self.dtype

    @property
    def strides(self) -> tuple[tuple[int, ...], ...]:
        return self.strides_c, self.strides_a, self.strides_b

    def least_read(self) -> int:
        """The condition, in elements of `dtype`: all of it may be true, and b a single number."""
        return math.prod(self.input_shapes[0]) // ITEMSIZE[self.dtype]

    def scalars(self) -> tuple[Scalar, ...]:
        return self.places()

    def small_shapes(self) -> Iterator[Shape]:
        for dims, first, second in BROADCASTS:
            for c, a, b in ((first, first, second), (second, first, first)):
                yield Shape("size", replace(self, shape=dims, strides_c=c, strides_a=a, strides_b=b))
