"""Transposed convolution: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from kernels.ops._base import Params, Shape
from kernels.ops._windows import steps_words, taps


@dataclass(frozen=True)
class ConvTranspose(Params):
    """2-D transposed convolution: each element of x adds its multiple of the window to y, where a convolution
    of the same stride, padding and dilation would have read it; then the bias.

    Tensors in order: x (n, c, h, w), weight (c, m // group, kh, kw), bias (m,) if `bias`; y (n, m, out_h,
    out_w). `pad_top` rows and `pad_left` columns of what is added up lie before y, and what does not reach
    y's end is added up there all the same: to y belongs what it has room for.
    """

    op: ClassVar[str] = "conv_transpose"
    struct: ClassVar[str] = (
        "int n, c, h, w, m, kh, kw, out_h, out_w, stride_h, stride_w;"
        "int pad_top, pad_left, dilation_h, dilation_w, group"
    )
    units: ClassVar[str] = "n"
    most_inputs: ClassVar[int] = 3
    weight_inputs: ClassVar[tuple[int, ...]] = (1, 2)
    axes: ClassVar[tuple[str, ...]] = ("image", "map", "row", "column")
    images: ClassVar[bool] = True

    n: int
    c: int
    h: int
    w: int
    m: int
    kh: int
    kw: int
    out_h: int
    out_w: int
    stride_h: int = 1
    stride_w: int = 1
    pad_top: int = 0
    pad_left: int = 0
    dilation_h: int = 1
    dilation_w: int = 1
    group: int = 1
    bias: bool = False
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        return 2 * self.n * self.c * self.h * self.w * (self.m // self.group) * self.kh * self.kw

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        bias = ((self.m,),) if self.bias else ()
        return ((self.n, self.c, self.h, self.w), (self.c, self.m // self.group, self.kh, self.kw), *bias)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.n, self.m, self.out_h, self.out_w)

    @property
    def whole(self) -> tuple[int, int]:
        """Rows and columns of all that is added up behind the padding at the beginning."""
        return (
            (self.h - 1) * self.stride_h + (self.kh - 1) * self.dilation_h + 1 - self.pad_top,
            (self.w - 1) * self.stride_w + (self.kw - 1) * self.dilation_w + 1 - self.pad_left,
        )

    def least_flops(self, method: str) -> float:
        """What an element of x adds to lies where a convolution of y would have read y."""
        rows = (self.h, self.out_h, self.kh, self.stride_h, self.pad_top, self.dilation_h)
        columns = (self.w, self.out_w, self.kw, self.stride_w, self.pad_left, self.dilation_w)
        return 2.0 * self.n * self.c * (self.m // self.group) * taps((rows, columns))

    def least_read(self) -> int:
        """None: all of it may lie in the padding."""
        return 0

    def small_shapes(self) -> Iterator[Shape]:
        p = self
        plain = ConvTranspose(1, 3, 5, 7, 4, p.kh if p.kh <= 5 else 3, p.kw if p.kw <= 5 else 2, 0, 0)
        shapes = {
            "plain": plain,
            "bias": replace(plain, bias=True),
            "pad": replace(plain, pad_top=plain.kh // 2, pad_left=(plain.kw + 1) // 2),
            "stride": replace(plain, stride_h=2, stride_w=2),
            "strides": replace(plain, stride_h=2, stride_w=3),
            "group": replace(plain, c=6, m=4, group=2),
            "dilation": replace(plain, dilation_h=2, dilation_w=3),
            "batch": replace(plain, n=3),
            "kernel": replace(plain, kh=plain.kh + 1),
            "size": replace(plain, h=12, w=18, c=19, m=37),
            "all": replace(plain, n=5, c=10, m=6, group=2, bias=True, pad_top=1, stride_h=3, stride_w=2),
        }
        for tag, shape in shapes.items():
            yield Shape(tag, shape.sized())
        yield Shape("pad", shapes["pad"].sized(less=1))
        yield Shape("size", shapes["strides"].sized(less=-2))
        own = replace(p, n=min(p.n, 2), h=min(p.h, 6), w=min(p.w, 6))
        yield Shape("own", own if (own.h, own.w) == (p.h, p.w) else own.sized())

    def sized(self, less: int = 0) -> ConvTranspose:
        """With a y that has room for all that is added up, or less."""
        return replace(self, out_h=max(1, self.whole[0] - less), out_w=max(1, self.whole[1] - less))

    @property
    def words(self) -> str:
        p = self
        parts = [f"{p.n}×{p.c}×{p.h}×{p.w} → {p.m}×{p.out_h}×{p.out_w}", f"kernel {p.kh}×{p.kw}"]
        parts += steps_words(p)
        parts += [f"pad {p.pad_top}, {p.pad_left}"] if p.pad_top or p.pad_left else []
        parts += [f"group {p.group}"] if p.group > 1 else []
        return ", ".join(parts + ["bias"] * p.bias)
