"""Change of the element type: what its kernels are told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernels.ops._base import ITEMSIZE, Scalar, int32
from kernels.ops._elements import OneByOne


@dataclass(frozen=True)
class Cast(OneByOne):
    """Element type changed from `dtype` to `to`. Tensors in order: x (size,); y (size,)."""

    op: ClassVar[str] = "cast"
    struct: ClassVar[str] = "index_t size; int from, to"
    size: int
    dtype: str
    to: str

    @property
    def flops(self) -> int:
        return 0

    @property
    def nbytes(self) -> int:
        return self.size * (ITEMSIZE[self.dtype] + ITEMSIZE[self.to])

    @property
    def out_dtype(self) -> str:
        return self.to

    def _of_rows(self, count: int) -> Cast:
        return replace(self, size=count)

    def scalars(self) -> tuple[Scalar, ...]:
        kinds = tuple(ITEMSIZE)
        return (np.int64(self.size), *int32(kinds.index(self.dtype), kinds.index(self.to)))
