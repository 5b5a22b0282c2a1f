"""Comparison of two operands element by element: what its kernels are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kernels.ops._axes import Broadcast
from kernels.ops._base import Scalar, int32

COMPARE_KINDS = ("equal", "less", "less_equal", "greater", "greater_equal")


@dataclass(frozen=True)
class Compare(Broadcast):
    """Truth of `a kind b` with broadcasting, `kind` one of COMPARE_KINDS; nothing compares with NaN.

    Tensors in order: a, b of `dtype`; y of `shape` and bool. Strides as of Binary.
    """

    op: ClassVar[str] = "compare"
    struct: ClassVar[str] = "index_t size, dims[6], strides_a[6], strides_b[6]; int kind"
    most_inputs: ClassVar[int] = 2
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {"kind": ("COMPARE", COMPARE_KINDS)}

    kind: str
    shape: tuple[int, ...]
    strides_a: tuple[int, ...]
    strides_b: tuple[int, ...]
    dtype: str = "float32"

    @property
    def out_dtype(self) -> str:
        return "bool"

    @property
    def strides(self) -> tuple[tuple[int, ...], ...]:
        return self.strides_a, self.strides_b

    def scalars(self) -> tuple[Scalar, ...]:
        return (*self.places(), *int32(COMPARE_KINDS.index(self.kind)))
