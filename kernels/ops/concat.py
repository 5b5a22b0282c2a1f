"""Tensors joined along an axis: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernels.errors import KernelError
from kernels.ops._base import ITEMSIZE, Params, Scalar, Shape

MOST_PARTS = 32
# Rows and widths: of fours, odd, one alone that is wide, many, with a part that is a row long.
_JOINED: tuple[tuple[int, tuple[int, ...]], ...] = (
    (1, (8, 4)),
    (3, (5, 7, 2)),
    (2, (1030, 12)),
    (5, (3, 1, 4, 1, 5, 9, 2, 6)),
    (7, (1, 1)),
)


@dataclass(frozen=True)
class Concat(Params):
    """Rows side by side: each of the `outer` rows of y is a row of the first input, then one of the second, …

    Tensors in order: x0 (outer, widths[0]), x1 (outer, widths[1]), …; y (outer, row), `row` the sum of the
    widths.
    """

    op: ClassVar[str] = "concat"
    struct: ClassVar[str] = f"index_t outer, row, widths[{MOST_PARTS}]; int itemsize"
    units: ClassVar[str] = "outer"
    most_inputs: ClassVar[int] = MOST_PARTS

    outer: int
    widths: tuple[int, ...]
    dtype: str = "float32"

    @property
    def row(self) -> int:
        return sum(self.widths)

    @property
    def flops(self) -> int:
        return 0

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple((self.outer, width) for width in self.widths)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.outer, self.row

    def has_rows(self, place: int) -> bool:
        return True

    def scalars(self) -> tuple[Scalar, ...]:
        if len(self.widths) > MOST_PARTS:
            raise KernelError(f"{self} joins {len(self.widths)} tensors, and concat takes up to {MOST_PARTS}")
        widths = (*self.widths, *(0,) * (MOST_PARTS - len(self.widths)))
        return (*map(np.int64, (self.outer, self.row, *widths)), np.int32(ITEMSIZE[self.dtype]))

    def small_shapes(self) -> Iterator[Shape]:
        return (Shape("size", replace(self, outer=outer, widths=widths)) for outer, widths in _JOINED)
