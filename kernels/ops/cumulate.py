"""Sums or products of all that comes before along an axis: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from kernels.ops._axes import Along
from kernels.ops._base import Shape

CUMULATE_KINDS = ("sum", "prod")


@dataclass(frozen=True)
class Cumulate(Along):
    """y (outer, axis, inner) of x of the same shape: each element the sum or product, `kind`, of those up to
    it along `axis`; `exclusive`: of those before it (0 or 1 at the first); `reverse`: counted from the
    end."""

    op: ClassVar[str] = "cumulate"
    struct: ClassVar[str] = "index_t outer; int axis; index_t inner; int kind, exclusive, reverse"
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {"kind": ("CUMULATE", CUMULATE_KINDS)}

    kind: str
    outer: int
    axis: int
    inner: int
    exclusive: bool = False
    reverse: bool = False
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        return self.outer * self.axis * self.inner

    def small_shapes(self) -> Iterator[Shape]:
        yield Shape("own", replace(self, outer=min(self.outer, 3), inner=min(self.inner, 70)))
        for outer, axis, inner in ((1, 7, 1), (3, 100, 1), (2, 9, 19)):
            yield Shape("size", replace(self, outer=outer, axis=axis, inner=inner))
