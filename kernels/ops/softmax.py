"""Softmax: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernels.ops._axes import Along
from kernels.ops._base import Scalar, Shape, int32


@dataclass(frozen=True)
class Softmax(Along):
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

    def scalars(self) -> tuple[Scalar, ...]:
        return (np.int64(self.outer), *int32(self.axis), np.int64(self.inner), *int32(self.log))

    def small_shapes(self) -> Iterator[Shape]:
        yield Shape("own", replace(self, outer=min(self.outer, 3)))
        yield from (Shape("size", replace(self, outer=3, axis=axis, inner=1)) for axis in (1, 7, 1030))
        several = replace(self, outer=2, axis=33, inner=19)
        yield from (Shape("all", replace(several, log=log)) for log in (False, True))
