"""Images read at the places of a grid: what its kernels are told."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from kernels.ops._base import Params, Shape

GRID_MODES = ("nearest", "linear", "cubic")
GRID_PADDINGS = ("zeros", "border", "reflection")
Three = tuple[int, int, int]


@dataclass(frozen=True)
class GridSample(Params):
    """x (n, c, *size) at the places of a grid: y (n, c, *out).

    Tensors in order: x; grid (n, *out, dims), the last axis of x first, from −1 to 1; y. Images of two axes
    have a first size of 1. corners: −1 and 1 are the middles of the first and the last element, else their
    outer edges. padding: what lies beyond x: zeros, the nearest element, or x reflected at those middles or
    edges.
    """

    op: ClassVar[str] = "grid_sample"
    struct: ClassVar[str] = "int n, c, size[3], out[3], dims, mode, padding, corners"
    units: ClassVar[str] = "n"
    most_inputs: ClassVar[int] = 2
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {
        "mode": ("GRID", GRID_MODES),
        "padding": ("BEYOND", GRID_PADDINGS),
    }

    n: int
    c: int
    size: Three
    out: Three
    dims: int = 2
    mode: str = "linear"
    padding: str = "zeros"
    corners: bool = False
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        """A multiply-add for each element that one of y is read from."""
        taps = {"nearest": 1, "linear": 2, "cubic": 4}[self.mode] ** self.dims
        return 2 * taps * self.outputs if taps > 1 else 0

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.n, self.c, *self.size), (self.n, *self.out, self.dims))

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.n, self.c, *self.out)

    def least_read(self) -> int:
        """The grid: all its places may be one."""
        return math.prod(self.input_shapes[1])

    def has_rows(self, place: int) -> bool:
        return True

    def small_shapes(self) -> Iterator[Shape]:
        plain = replace(self, n=1, c=2, size=(1, 5, 6), out=(1, 4, 7), dims=2)
        if self.mode != "cubic":
            yield Shape("axes", replace(plain, size=(3, 4, 5), out=(2, 3, 4), dims=3))
        yield Shape("plain", plain)
        yield Shape("batch", replace(plain, n=3))
        yield Shape("size", replace(plain, c=5, size=(1, 17, 9), out=(1, 13, 21)))
        yield Shape("own", replace(self, n=min(self.n, 2), c=min(self.c, 4)))
