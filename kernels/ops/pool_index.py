"""Where the maxima of a pool lie: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from kernels.ops._base import Params, Scalar, Shape, int32
from kernels.ops.pool import WINDOW, Pool


@dataclass(frozen=True)
class PoolIndex(Params):
    """For each window of a max pool the place of its maximum in all of x, int64; of equal ones the first.

    Tensors in order: x (n, c, h, w); y (n, c, out_h, out_w). Places are counted in the order of memory, or
    with `by_columns` within each image column by column.
    """

    op: ClassVar[str] = "pool_index"
    struct: ClassVar[str] = WINDOW + "; int by_columns"
    axes: ClassVar[tuple[str, ...]] = Pool.axes

    pool: Pool
    by_columns: bool = False

    @property
    def dtype(self) -> str:
        return self.pool.dtype

    @property
    def out_dtype(self) -> str:
        return "int64"

    @property
    def flops(self) -> int:
        return self.pool.flops

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return self.pool.input_shapes

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.pool.output_shape

    def least_read(self) -> int:
        return self.pool.least_read()

    def scalars(self) -> tuple[Scalar, ...]:
        return (*self.pool.scalars()[:-1], *int32(self.by_columns))

    def small_shapes(self) -> Iterator[Shape]:
        few = replace(self.pool, n=2, c=min(self.pool.c, 3))
        yield Shape("own", replace(self, pool=few))
        for tag, pool in few.small().items():
            yield Shape(tag, replace(self, pool=pool))
        yield Shape("layout", PoolIndex(few.small()["all"], not self.by_columns))

    @property
    def words(self) -> str:
        return f"places of {self.pool.words}" + ", column by column" * self.by_columns
