"""Functions of one element: what their kernels are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernels.ops._base import ITEMSIZE, Scalar
from kernels.ops._elements import OneByOne

UNARY_KINDS = ("relu", "tanh", "sigmoid", "identity")


@dataclass(frozen=True)
class Unary(OneByOne):
    """An element-wise function, `kind` one of UNARY_KINDS. Tensors in order: x (size,); y (size,)."""

    op: ClassVar[str] = "unary"
    struct: ClassVar[str] = "index_t size; int kind"
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {"kind": ("UNARY", UNARY_KINDS)}

    kind: str
    size: int
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        return 0 if self.kind == "identity" else self.size

    @property
    def nbytes(self) -> int:
        return 2 * self.size * ITEMSIZE[self.dtype]

    def _of_rows(self, count: int) -> Unary:
        return replace(self, size=count)

    def scalars(self) -> tuple[Scalar, ...]:
        return (np.int64(self.size), np.int32(UNARY_KINDS.index(self.kind)))
