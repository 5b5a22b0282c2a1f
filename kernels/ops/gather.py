"""Places along an axis picked by their numbers: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernels.ops._base import ITEMSIZE, Division, Params, Scalar, Shape, int32

INDEX_TYPES = ("int32", "int64")


@dataclass(frozen=True)
class Gather(Params):
    """Places along `axis` of x (outer, axis, inner), in the order of `count` numbers, each as often as it is
    named.

    Tensors in order: x; places (count,) of element type `index`; y (outer, count, inner). A number below 0
    counts from the end; one beyond the axis means the place that is nearest.
    """

    op: ClassVar[str] = "gather"
    struct: ClassVar[str] = "index_t outer; int axis, count; index_t inner; int wide"
    units: ClassVar[str] = "outer"
    most_inputs: ClassVar[int] = 2
    weight_inputs: ClassVar[tuple[int, ...]] = (1,)

    outer: int
    axis: int
    inner: int
    count: int
    index: str = "int64"
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        return 0

    @property
    def nbytes(self) -> int:
        moved = 2 * self.outer * self.count * self.inner * ITEMSIZE[self.dtype]
        return moved + self.count * ITEMSIZE[self.index]

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.outer, self.axis, self.inner), (self.count,))

    @property
    def input_dtypes(self) -> tuple[str, ...]:
        return (self.dtype, self.index)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.outer, self.count, self.inner)

    def least_read(self) -> int:
        """One place: all may be the same."""
        return self.outer * self.inner

    def scalars(self) -> tuple[Scalar, ...]:
        wide = int32(self.index == "int64")
        return (np.int64(self.outer), *int32(self.axis, self.count), np.int64(self.inner), *wide)

    @property
    def division(self) -> Division:
        if self.outer == 1:
            return Division(self.count, (0, 1), self.inner, lambda count: replace(self, count=count))
        return Division(self.outer, (self.axis * self.inner, 0), self.count * self.inner, self._of_rows)

    def small_shapes(self) -> Iterator[Shape]:
        yield Shape("own", replace(self, outer=min(self.outer, 3), inner=min(self.inner, 70)))
        for outer, axis, inner, count in ((1, 7, 1, 1030), (3, 5, 1, 4), (2, 9, 19, 12), (4, 1, 3, 2)):
            yield Shape("size", replace(self, outer=outer, axis=axis, inner=inner, count=count))
