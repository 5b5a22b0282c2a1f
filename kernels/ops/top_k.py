"""Where the largest or smallest lie along an axis: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from kernels.ops._axes import Along
from kernels.ops._base import Shape


@dataclass(frozen=True)
class TopK(Along):
    """The places along `axis` of x (outer, axis, inner) of the k largest, or smallest, in their order: y
    (outer, k, inner) of int64. Of equal ones the first comes first; NaN is larger than all others."""

    op: ClassVar[str] = "top_k"
    struct: ClassVar[str] = "index_t outer; int axis; index_t inner; int k, largest"

    outer: int
    axis: int
    inner: int
    k: int
    largest: bool = True
    dtype: str = "float32"

    @property
    def out_dtype(self) -> str:
        return "int64"

    @property
    def flops(self) -> int:
        return 0

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.outer, self.k, self.inner)

    def small_shapes(self) -> Iterator[Shape]:
        axis = min(self.axis, 200)
        own = replace(
            self, outer=min(self.outer, 3), inner=min(self.inner, 9), axis=axis, k=min(self.k, axis)
        )
        yield Shape("own", own)
        for outer, axis, inner, k in ((1, 7, 1, 3), (3, 100, 1, 5), (2, 9, 5, 9), (4, 1, 3, 1)):
            yield Shape("size", replace(self, outer=outer, axis=axis, inner=inner, k=k))
