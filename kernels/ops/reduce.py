"""One axis reduced to a number: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from kernels.ops._axes import Along
from kernels.ops._base import Shape

# logsum: log Σx; logsumexp: log Σeˣ, the maximum taken out; argmax, argmin: the place, not the value.
REDUCE_KINDS = (
    "sum", "mean", "max", "min", "prod", "l1", "l2", "sumsquare", "logsum", "logsumexp", "argmax", "argmin",
)  # fmt: skip
PLACES = ("argmax", "argmin")


@dataclass(frozen=True)
class Reduce(Along):
    """Each row along `axis` of x (outer, axis, inner) reduced to one number, `kind` one of REDUCE_KINDS:
    y (outer, inner).

    argmax and argmin give the first place along the axis that holds the extreme value, `last` the last one,
    as int64.
    """

    op: ClassVar[str] = "reduce"
    struct: ClassVar[str] = "index_t outer; int axis; index_t inner; int kind, last"
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {"kind": ("REDUCE", REDUCE_KINDS)}

    kind: str
    outer: int
    axis: int
    inner: int
    last: bool = False
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        return self.outer * self.axis * self.inner * (3 if self.kind == "logsumexp" else 1)

    @property
    def out_dtype(self) -> str:
        return "int64" if self.kind in PLACES else self.dtype

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.outer, self.inner)

    def small_shapes(self) -> Iterator[Shape]:
        yield Shape("own", replace(self, outer=min(self.outer, 3), inner=min(self.inner, 70)))
        yield from (Shape("size", replace(self, outer=3, axis=axis, inner=1)) for axis in (1, 7, 1030))
        yield Shape("size", replace(self, outer=2, axis=33, inner=19))

    def of_squares(self) -> Reduce | None:
        return self if self.kind == "sum" else None
