"""Elements added round a tensor: what its kernels are told."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernels.errors import KernelError
from kernels.ops._axes import contiguous, lead
from kernels.ops._base import MAX_RANK, Division, Params, Scalar, Shape, undivided

PAD_MODES = ("constant", "reflect", "edge", "wrap")
_Ints = tuple[int, ...]
# Shapes with what is added before and behind, each axis otherwise; reflected, less than there is.
_PADS: tuple[tuple[_Ints, _Ints, _Ints], ...] = (
    ((37,), (3,), (5,)),
    ((5, 9), (0, 2), (1, 4)),
    ((2, 4, 7, 6), (0, 0, 2, 1), (0, 0, 1, 3)),
    ((1030, 3), (1, 0), (0, 2)),
)


@dataclass(frozen=True)
class Pad(Params):
    """x of `shape` with `begin[i]` and `end[i]` elements added on axis i (negative: cut), `mode` of
    PAD_MODES."""

    op: ClassVar[str] = "pad"
    struct: ClassVar[str] = "index_t size, dims[6], dims_x[6], begin[6], strides[6]; int mode; float value"
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {"mode": ("PAD", PAD_MODES)}

    shape: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]
    mode: str = "constant"
    value: float = 0.0
    dtype: str = "float32"

    @property
    def out_shape(self) -> tuple[int, ...]:
        return tuple(d + b + e for d, b, e in zip(self.shape, self.begin, self.end, strict=True))

    @property
    def flops(self) -> int:
        return 0

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.shape,)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.out_shape

    def least_read(self) -> int:
        """None: it may cut all away."""
        return 0

    @property
    def rows(self) -> int | None:
        return None

    def _of_rows(self, count: int) -> Pad:
        return replace(self, shape=(count, *self.shape[1:]))

    def scalars(self) -> tuple[Scalar, ...]:
        sizes, begin, out = self._merged()
        strides = contiguous(sizes)
        if any(d < 0 for d in out):
            raise KernelError(f"{self} would cut away more than there is")
        axes = (lead(out, 1), lead(sizes, 1), lead(begin, 0), lead(strides, 0))
        if len(out) > MAX_RANK:
            raise KernelError(f"{self} has {len(out)} axes after merging, and pad takes up to {MAX_RANK}")
        flat = (np.int64(v) for axis in axes for v in axis)
        mode = np.int32(PAD_MODES.index(self.mode))
        return (np.int64(math.prod(out)), *flat, mode, np.float32(self.value))

    def _merged(self) -> tuple[list[int], list[int], list[int]]:
        """Input sizes, begins and output sizes; neighbours that are both left as they are become one axis."""
        sizes: list[int] = []
        begins: list[int] = []
        outs: list[int] = []
        for size, begin, out, end in zip(self.shape, self.begin, self.out_shape, self.end, strict=True):
            whole = begin == 0 and end == 0
            if whole and sizes and begins[-1] == 0 and sizes[-1] == outs[-1]:
                sizes[-1] *= size
                outs[-1] *= size
            else:
                sizes.append(size)
                begins.append(begin)
                outs.append(out)
        return sizes, begins, outs

    @property
    def division(self) -> Division:
        if not self.shape or not self.begin[0] == self.end[0] == 0:
            return undivided(self)
        inner = math.prod(self.shape[1:])
        return Division(self.shape[0], (inner,), math.prod(self.out_shape[1:]), self._of_rows)

    def small_shapes(self) -> Iterator[Shape]:
        p = self
        yield from (Shape("size", replace(p, shape=d, begin=b, end=e)) for d, b, e in _PADS)
        if p.mode == "constant":
            added = replace(p, shape=(2, 3, 4, 5), begin=(0, 1, 0, 2), end=(1, 0, 3, 1), value=-1.5)
            yield Shape("all", added)
            yield Shape("cut", replace(p, shape=(6, 7), begin=(-1, 2), end=(3, -2)))
