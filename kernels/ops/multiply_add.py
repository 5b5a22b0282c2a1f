"""A product and a sum in one, as a normalisation ends: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from kernels.ops._axes import BROADCASTS, Broadcast
from kernels.ops._base import Scalar, Shape, activation_code, int32


@dataclass(frozen=True)
class MultiplyAdd(Broadcast):
    """a · b + c with broadcasting, c a constant, then `activation`.

    Tensors in order: a, b, c; y of `shape`. Strides as of Binary.
    """

    op: ClassVar[str] = "multiply_add"
    struct: ClassVar[str] = "index_t size, dims[6], strides_a[6], strides_b[6], strides_c[6]; int activation"
    most_inputs: ClassVar[int] = 3
    weight_inputs: ClassVar[tuple[int, ...]] = (2,)

    shape: tuple[int, ...]
    strides_a: tuple[int, ...]
    strides_b: tuple[int, ...]
    strides_c: tuple[int, ...]
    activation: str | None = None
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        return 2 * self.size

    @property
    def strides(self) -> tuple[tuple[int, ...], ...]:
        return self.strides_a, self.strides_b, self.strides_c

    def scalars(self) -> tuple[Scalar, ...]:
        return (*self.places(), *int32(activation_code(self.activation)))

    def small_shapes(self) -> Iterator[Shape]:
        for dims, first, second in BROADCASTS:
            for a, b, c in ((first, second, second), (first, first, second), (second, first, first)):
                yield Shape("size", replace(self, shape=dims, strides_a=a, strides_b=b, strides_c=c))
        dense = (1,)
        yield Shape("activation", MultiplyAdd((37,), dense, dense, dense, "tanh", self.dtype))
