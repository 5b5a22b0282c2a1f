"""Rows of a tensor replaced, or joined with others, by their numbers: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from kernels.ops._base import ITEMSIZE, Params, Shape

SCATTER_KINDS = ("put", "add", "mul", "max", "min")


@dataclass(frozen=True)
class Scatter(Params):
    """x (size, inner), of which each row that a place names is replaced by the row of the updates at the
    place of that place (put), or joined with it by `kind`, one of SCATTER_KINDS.

    Tensors in order: x; places (count,) of int64; updates (count, inner); y as x. Where a row is named
    several times its updates come in their order: of several that are put the last stays. A place below 0
    counts from the end; one beyond the rows is left out.
    """

    op: ClassVar[str] = "scatter"
    struct: ClassVar[str] = "index_t size, inner; int count, kind"
    most_inputs: ClassVar[int] = 3
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {"kind": ("SCATTER", SCATTER_KINDS)}

    kind: str
    size: int
    inner: int
    count: int
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        return 0 if self.kind == "put" else self.count * self.inner

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.size, self.inner), (self.count,), (self.count, self.inner))

    @property
    def input_dtypes(self) -> tuple[str, ...]:
        return (self.dtype, "int64", self.dtype)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.size, self.inner)

    def least_read(self) -> int:
        """The places, in elements of `dtype`: all rows may be replaced, and by one row."""
        return self.count * ITEMSIZE["int64"] // ITEMSIZE[self.dtype]

    def small_shapes(self) -> Iterator[Shape]:
        own = replace(self, size=min(self.size, 50), inner=min(self.inner, 70), count=min(self.count, 20))
        yield Shape("own", own)
        for size, inner, count in ((7, 1, 3), (5, 9, 12), (40, 1, 40), (3, 33, 1)):
            yield Shape("size", replace(self, size=size, inner=inner, count=count))
