"""Convolution of volumes: what its kernels are told."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from kernels.ops._base import Params, Shape
from kernels.ops._windows import taps

Three = tuple[int, int, int]


@dataclass(frozen=True)
class Conv3d(Params):
    """3-D convolution (cross-correlation), y = x ∗ w + bias. What belongs to an axis stands in the order
    depth, height, width.

    Tensors in order: x (n, c, *size), weight (m, c // group, *kernel), bias (m,) if `bias`; y (n, m, *out).
    `pad`: zeros before x on each axis; what the last windows read beyond it are zeros, too.
    """

    op: ClassVar[str] = "conv3d"
    struct: ClassVar[str] = "int n, c, m, group, size[3], kernel[3], out[3], stride[3], pad[3], dilation[3]"
    units: ClassVar[str] = "n"
    most_inputs: ClassVar[int] = 3
    weight_inputs: ClassVar[tuple[int, ...]] = (1, 2)
    axes: ClassVar[tuple[str, ...]] = ("volume", "map", "slice", "row", "column")
    images: ClassVar[bool] = True

    n: int
    c: int
    size: Three
    m: int
    kernel: Three
    out: Three
    stride: Three = (1, 1, 1)
    pad: Three = (0, 0, 0)
    dilation: Three = (1, 1, 1)
    group: int = 1
    bias: bool = False
    dtype: str = "float32"

    @property
    def depth(self) -> int:
        """Terms of one sum."""
        return self.c // self.group * math.prod(self.kernel)

    @property
    def flops(self) -> int:
        return 2 * self.outputs * self.depth

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        bias = ((self.m,),) if self.bias else ()
        return ((self.n, self.c, *self.size), (self.m, self.c // self.group, *self.kernel), *bias)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.n, self.m, *self.out)

    def least_flops(self, method: str) -> float:
        axes = zip(self.out, self.size, self.kernel, self.stride, self.pad, self.dilation, strict=True)
        return 2.0 * self.n * self.m * (self.c // self.group) * taps(axes)

    def least_read(self) -> int:
        """None: windows may lie in padding, and strides leave out what they like."""
        return 0

    def small_shapes(self) -> Iterator[Shape]:
        p = self
        kernel = p.kernel if max(p.kernel) <= 5 else (3, 2, 3)
        plain = Conv3d(1, 3, (5, 6, 7), 4, kernel, (0, 0, 0))
        shapes = {
            "plain": plain,
            "bias": replace(plain, bias=True),
            "pad": replace(plain, pad=(1, 0, 2)),
            "stride": replace(plain, stride=(2, 2, 2)),
            "strides": replace(plain, size=(7, 8, 9), stride=(2, 1, 3)),
            "group": replace(plain, c=6, m=4, group=2),
            "dilation": replace(plain, size=(9, 10, 11), dilation=(2, 1, 2)),
            "batch": replace(plain, n=3),
            "size": replace(plain, size=(8, 9, 13), c=7, m=9),
            "all": replace(plain, n=3, c=6, m=4, group=2, bias=True, pad=(0, 1, 1), stride=(1, 2, 2)),
        }
        for tag, shape in shapes.items():
            yield Shape(tag, shape.sized())
        reach = [(k - 1) * d + 2 for k, d in zip(p.kernel, p.dilation, strict=True)]
        c, m = (min(maps // p.group, 4) * p.group for maps in (p.c, p.m))
        d, h, w = (min(size, least) for size, least in zip(p.size, reach, strict=True))
        yield Shape("own", replace(p, n=min(p.n, 2), c=c, m=m, size=(d, h, w)).sized())

    def sized(self, behind: Three = (0, 0, 0)) -> Conv3d:
        """With the output's size that follows from the other fields, and zeros behind x."""
        d, h, w = (
            max(1, (size + before + after - (k - 1) * d - 1) // step + 1)
            for size, before, after, k, d, step in zip(
                self.size, self.pad, behind, self.kernel, self.dilation, self.stride, strict=True
            )
        )
        return replace(self, out=(d, h, w))

    @property
    def words(self) -> str:
        def told(values: tuple[int, ...]) -> str:
            return "×".join(map(str, values))

        parts = [
            f"{told((self.n, self.c, *self.size))} → {told((self.m, *self.out))}, kernel {told(self.kernel)}"
        ]
        parts += [f"stride {told(self.stride)}"] if self.stride != (1, 1, 1) else []
        parts += [f"dilation {told(self.dilation)}"] if self.dilation != (1, 1, 1) else []
        parts += [f"pad {told(self.pad)}"] if any(self.pad) else []
        parts += [f"group {self.group}"] if self.group > 1 else []
        return ", ".join(parts + ["bias"] * self.bias)
