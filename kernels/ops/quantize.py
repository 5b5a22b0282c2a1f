"""Numbers brought to eight bits and back: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernels.ops._base import ITEMSIZE, Division, Params, Scalar, Shape, int32

THROUGH = ("uint8", "int8", "int32")


@dataclass(frozen=True)
class Quantize(Params):
    """x (outer, channels, inner) through whole numbers of type `through`, from `dtype` to `to`, of which each
    is float32 or `through` itself.

    From float32 comes q = round(x / scale) + zero, halves to the even neighbour, held within what the type
    holds; to float32 goes y = (q − zero) · scale; from float32 to float32 both, one behind the other. Tensors
    in order: x; scale (channels,) and zero (channels,), float32; y as x.
    """

    op: ClassVar[str] = "quantize"
    struct: ClassVar[str] = "index_t size; int channels; index_t inner; int from, to; float low, high"
    units: ClassVar[str] = "outer"
    most_inputs: ClassVar[int] = 3
    weight_inputs: ClassVar[tuple[int, ...]] = (1, 2)
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {"through": ("QUANTIZE", THROUGH)}

    outer: int
    channels: int
    inner: int
    through: str
    to: str = "float32"
    dtype: str = "float32"

    @property
    def size(self) -> int:
        return self.outer * self.channels * self.inner

    @property
    def limits(self) -> tuple[int, int]:
        """What the type holds."""
        info = np.iinfo(self.through)
        return int(info.min), int(info.max)

    @property
    def flops(self) -> int:
        return 4 * self.size

    @property
    def out_dtype(self) -> str:
        return self.to

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.outer, self.channels, self.inner), (self.channels,), (self.channels,))

    @property
    def input_dtypes(self) -> tuple[str, ...]:
        return (self.dtype, "float32", "float32")

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.outer, self.channels, self.inner)

    def scalars(self) -> tuple[Scalar, ...]:
        kinds = tuple(ITEMSIZE)
        types = int32(kinds.index(self.dtype), kinds.index(self.to))
        limits = (np.float32(limit) for limit in self.limits)
        return (np.int64(self.size), *int32(self.channels), np.int64(self.inner), *types, *limits)

    @property
    def division(self) -> Division:
        if self.outer == 1 and self.channels == 1:
            return Division(self.inner, (1, 0, 0), 1, lambda count: replace(self, inner=count))
        row = self.channels * self.inner
        return Division(self.outer, (row, 0, 0), row, self._of_rows)

    def small_shapes(self) -> Iterator[Shape]:
        yield Shape("plain", replace(self, outer=3, channels=1, inner=7))
        yield Shape("size", replace(self, outer=1, channels=1, inner=1030))
        yield Shape("all", replace(self, outer=2, channels=5, inner=19))
