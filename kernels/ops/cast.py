"""Change of the element type: what its kernels are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernels.ops._axes import OneByOne
from kernels.ops._base import ITEMSIZE, Scalar, int32

TOWARDS = ("nearest", "up", "down")


@dataclass(frozen=True)
class Cast(OneByOne):
    """Element type changed from `dtype` to `to`. Tensors in order: x (size,); y (size,).

    saturate: to an eight-bit float what is beyond the largest becomes that, infinity too, else infinity or
    NaN, as the type has them. towards: of a power of two (EXPONENTS) which of the two neighbours is taken.
    Four-bit floats always saturate; of whole numbers those bits are kept that the type has.
    """

    op: ClassVar[str] = "cast"
    struct: ClassVar[str] = "index_t size; int from, to, saturate, towards"
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {"towards": ("TOWARDS", TOWARDS)}
    size: int
    dtype: str
    to: str
    saturate: bool = False
    towards: str = "nearest"

    @property
    def flops(self) -> int:
        return 0

    @property
    def out_dtype(self) -> str:
        return self.to

    def scalars(self) -> tuple[Scalar, ...]:
        kinds = tuple(ITEMSIZE)
        types = kinds.index(self.dtype), kinds.index(self.to)
        return (np.int64(self.size), *int32(*types, self.saturate, TOWARDS.index(self.towards)))
