"""Sum of eight-bit tensors: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernels.ops._base import ITEMSIZE, Division, Params, Scalar, Shape, int32


@dataclass(frozen=True)
class QAdd(Params):
    """Two eight-bit tensors, each less its zero point and by its own scale, added and quantized again: real =
    (a − a_zero) · a_scale + (b − b_zero) · b_scale in double precision, where both products are exact; y =
    round(real / out_scale) + out_zero, halves to the even neighbour, held between low and high. An activation
    behind the sum is in these two. With a b_scale of 0 a is only brought to y's scale.

    Tensors in order: a (size,), of `dtype`; b (size,), of `other`; y (size,), of `to`. Scales are float32.
    """

    op: ClassVar[str] = "qadd"
    struct: ClassVar[str] = (
        "index_t size; int a_type, b_type, to; float a_scale, b_scale, out_scale; "
        "int a_zero, b_zero, out_zero, low, high"
    )
    most_inputs: ClassVar[int] = 2

    size: int
    a_scale: float = 1.0
    a_zero: int = 0
    b_scale: float = 1.0
    b_zero: int = 0
    out_scale: float = 1.0
    out_zero: int = 0
    low: int = 0
    high: int = 255
    dtype: str = "uint8"
    other: str = "uint8"
    to: str = "uint8"

    @property
    def out_dtype(self) -> str:
        return self.to

    @property
    def flops(self) -> int:
        return 5 * self.size

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.size,), (self.size,))

    @property
    def input_dtypes(self) -> tuple[str, ...]:
        return (self.dtype, self.other)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.size,)

    def scalars(self) -> tuple[Scalar, ...]:
        kinds = tuple(ITEMSIZE)
        return (
            np.int64(self.size),
            *int32(*(kinds.index(name) for name in (self.dtype, self.other, self.to))),
            *(np.float32(scale) for scale in (self.a_scale, self.b_scale, self.out_scale)),
            *int32(self.a_zero, self.b_zero, self.out_zero, self.low, self.high),
        )

    @property
    def division(self) -> Division:
        return Division(self.size, (1, 1), 1, lambda count: replace(self, size=count))

    def small_shapes(self) -> Iterator[Shape]:
        yield from (Shape("size", replace(self, size=size)) for size in (1, 7, 1030))
        # By powers of two, of which every second sum is a tie.
        yield Shape("ties", replace(self, size=1030, a_scale=0.25, b_scale=0.25, out_scale=0.5))
