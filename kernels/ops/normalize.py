"""Rows brought to mean 0 and deviation 1: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from kernels.ops._base import Division, Params, Shape

GIVES = ("all", "mean", "factor")


@dataclass(frozen=True)
class Normalize(Params):
    """Each row of x (count, length): y = (x − mean) · factor · scale + bias, with factor = 1 / √(variance +
    epsilon). Without `centred` the mean is taken to be 0, and the variance to be the mean of squares.

    Tensors in order: x; scale and bias (channels,) if `affine`; y as x. Element j of row i has the channel
    (i mod groups) · (length / inner) + j / inner: `inner` neighbours share one, and rows take turns in
    `groups`. A layer's has groups 1 and inner 1; an instance's a row a channel, groups being the channels and
    inner the length. gives: the whole answer; or of each row its mean or its factor alone, y (count, 1).
    """

    op: ClassVar[str] = "normalize"
    struct: ClassVar[str] = "index_t count; int length, inner, groups, centred, gives; float epsilon"
    most_inputs: ClassVar[int] = 3
    weight_inputs: ClassVar[tuple[int, ...]] = (1, 2)
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {"gives": ("NORMALIZE", GIVES)}

    count: int
    length: int
    inner: int = 1
    groups: int = 1
    affine: bool = False
    centred: bool = True
    epsilon: float = 1e-5
    gives: str = "all"
    dtype: str = "float32"

    @property
    def channels(self) -> int:
        return self.groups * (self.length // self.inner)

    @property
    def flops(self) -> int:
        return 7 * self.count * self.length

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.count, self.length), *((self.channels,),) * (2 * self.affine))

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.count, self.length if self.gives == "all" else 1)

    @property
    def laid(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (1, *self.input_shapes[0]), (1, *self.output_shape)

    @property
    def rows(self) -> int | None:
        return self.count // self.groups

    def _of_rows(self, count: int) -> Normalize:
        return replace(self, count=count * self.groups)

    @property
    def output_rows(self) -> tuple[int, ...]:
        return (self.count // self.groups, self.groups * self.output_shape[1])

    @property
    def division(self) -> Division:
        """Rows that take turns stay together."""
        inputs = (self.groups * self.length, *(0, 0) * self.affine)
        return Division(self.count // self.groups, inputs, self.groups * self.output_shape[1], self._of_rows)

    def small_shapes(self) -> Iterator[Shape]:
        p = self
        yield Shape("plain", replace(p, count=3, length=10, inner=1, groups=1, affine=False))
        yield Shape("size", replace(p, count=2, length=1030, inner=1, groups=1))
        yield Shape("bias", replace(p, count=3, length=33, inner=1, groups=1, affine=p.gives == "all"))
        if p.gives == "all":
            yield Shape("all", replace(p, count=6, length=35, inner=35, groups=3, affine=True))
            yield Shape("all", replace(p, count=4, length=36, inner=9, groups=2, affine=True))
