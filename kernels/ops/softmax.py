"""Softmax: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernels.ops._base import ITEMSIZE, Division, Params, Scalar, Shape, int32


@dataclass(frozen=True)
class Softmax(Params):
    """Softmax (or its logarithm, if `log`) over `axis` of x (outer, axis, inner); y the same shape."""

    op: ClassVar[str] = "softmax"
    struct: ClassVar[str] = "index_t outer; int axis; index_t inner; int log_of_it"
    outer: int
    axis: int
    inner: int
    log: bool = False
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        return 5 * self.outer * self.axis * self.inner

    @property
    def nbytes(self) -> int:
        return 2 * self.outer * self.axis * self.inner * ITEMSIZE[self.dtype]

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.outer, self.axis, self.inner),)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.outer, self.axis, self.inner)

    @property
    def rows(self) -> int | None:
        return self.outer

    def _of_rows(self, count: int) -> Softmax:
        return replace(self, outer=count)

    def scalars(self) -> tuple[Scalar, ...]:
        return (np.int64(self.outer), *int32(self.axis), np.int64(self.inner), *int32(self.log))

    @property
    def division(self) -> Division:
        row = self.axis * self.inner
        return Division(self.outer, (row,), row, self._of_rows)

    def small_shapes(self) -> Iterator[Shape]:
        yield Shape("own", replace(self, outer=min(self.outer, 3)))
        yield from (Shape("size", replace(self, outer=3, axis=axis, inner=1)) for axis in (1, 7, 1030))
        several = replace(self, outer=2, axis=33, inner=19)
        yield from (Shape("all", replace(several, log=log)) for log in (False, True))
