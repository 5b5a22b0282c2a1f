"""Convolution: what its kernels are told."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from kernels.ops._base import Division, Params, Shape
from kernels.ops._windows import sized, taps, touched, window_words

TILE = 6
COMPLEX = 3.0  # multiplications of a complex product, as Gauss has them


@dataclass(frozen=True)
class Conv(Params):
    """2-D convolution (cross-correlation), y = activation(x ∗ w + bias).

    Tensors in order: x (n, c, h, w), weight (m, c // group, kh, kw), bias (m,) if `bias`; y (n, m, out_h,
    out_w).
    """

    op: ClassVar[str] = "conv"
    struct: ClassVar[str] = (
        "int n, c, h, w, m, kh, kw, out_h, out_w, stride_h, stride_w;"
        "int pad_top, pad_left, dilation_h, dilation_w, group, activation"
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
    pad_bottom: int = 0
    pad_right: int = 0
    dilation_h: int = 1
    dilation_w: int = 1
    group: int = 1
    bias: bool = False
    activation: str | None = None
    dtype: str = "float32"

    @property
    def weights(self) -> int:
        """Elements of the weights."""
        return self.m * (self.c // self.group) * self.kh * self.kw

    @property
    def image(self) -> int:
        """Elements of one image."""
        return self.c * self.h * self.w

    @property
    def window_row(self) -> int:
        """Elements under a row of the window."""
        return self.c // self.group * self.kw

    @property
    def depthwise(self) -> bool:
        """Whether each of several channels is a group of its own, which no other channel adds to."""
        return self.group == self.c > 1

    @property
    def flops(self) -> int:
        return 2 * self.n * self.m * self.out_h * self.out_w * (self.c // self.group) * self.kh * self.kw

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        bias = ((self.m,),) if self.bias else ()
        return ((self.n, self.c, self.h, self.w), (self.m, self.c // self.group, self.kh, self.kw), *bias)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.n, self.m, self.out_h, self.out_w)

    def least_flops(self, method: str) -> float:
        """Winograd's tiles have TILE outputs along an axis at most: larger ones cost float32 more digits than
        any bound allows. Fourier's way has one complex product an output and channel at least."""
        rows = (self.out_h, self.h, self.kh, self.stride_h, self.pad_top, self.dilation_h)
        columns = (self.out_w, self.w, self.kw, self.stride_w, self.pad_left, self.dilation_w)
        depth = self.c // self.group
        plain = 2.0 * self.n * self.m * depth * taps((rows, columns))
        if method == "winograd" and self.stride_h == self.stride_w == 1:
            return plain * math.prod((TILE + k - 1) / (TILE * k) for k in (self.kh, self.kw))
        return min(plain, COMPLEX * self.outputs * depth) if method == "fft" else plain

    def least_read(self) -> int:
        return touched(self)

    @property
    def division(self) -> Division:
        p, filters, positions = self, self.m // self.group, self.out_h * self.out_w
        depth = p.c // p.group
        if p.n > 1:
            inputs = (p.image, 0) + (0,) * p.bias
            return Division(p.n, inputs, p.m * positions, p._of_rows)
        weights = filters * depth * p.kh * p.kw
        if p.group > 1:
            inputs = (p.image // p.group, weights) + (filters,) * p.bias
            return Division(
                p.group,
                inputs,
                filters * positions,
                lambda count: replace(p, group=count, c=count * depth, m=count * filters),
            )
        # Every part lays out the same columns, each for its own filters.
        inputs = (0, weights // p.m) + (1,) * p.bias
        return Division(p.m, inputs, positions, lambda count: replace(p, m=count), repeats=True)

    def small_shapes(self) -> Iterator[Shape]:
        return (Shape(tag, conv) for tag, conv in self.small())

    def small(self) -> Iterator[tuple[str, Conv]]:
        """Small convolutions, the last of them the timed shape's own."""
        p = self
        kh, kw = (p.kh, p.kw) if max(p.kh, p.kw) <= 7 else (3, 3)
        plain = Conv(1, 3, kh + 5, kw + 7, 4, kh, kw, 0, 0)
        many, several = (19, 37, 1), (10, 6, 2)  # channels, maps and groups
        if p.depthwise:  # so are they, for rungs that take nothing else
            maps = p.m // p.c
            plain = replace(plain, group=3, m=3 * maps)
            many, several = ((c, c * maps, c) for c in (19, 5))

        def of(plain: Conv, channels: tuple[int, int, int]) -> Conv:
            c, m, group = channels
            return replace(plain, c=c, m=m, group=group)

        shapes = {
            "plain": plain,
            "bias": replace(plain, bias=True),
            "pad": replace(plain, pad_top=1, pad_left=min(2, max(1, kw - 1)),
                           pad_bottom=min(2, max(1, kh - 1)), pad_right=1),
            "stride": replace(plain, stride_h=2, stride_w=2),
            "strides": replace(plain, h=kh + 8, w=kw + 9, stride_h=2, stride_w=3),
            "group": replace(plain, c=6, m=4, group=2),
            "dilation": replace(plain, h=2 * kh + 6, w=3 * kw + 5, dilation_h=2, dilation_w=3),
            "activation": replace(plain, activation="relu"),
            "batch": replace(plain, n=3),
            "kernel": replace(plain, kh=kh + 1),
            "size": of(replace(plain, h=kh + 12, w=kw + 18), many),
            "all": of(replace(plain, n=5, h=kh + 9, w=kw + 13, bias=True, pad_top=2, pad_left=1, pad_bottom=1,
                              pad_right=2, stride_h=3, stride_w=2, activation="tanh"), several),
        }  # fmt: skip
        for tag, shape in shapes.items():
            yield tag, sized(shape)
        # The timed shape itself with few images, a small one and fewer channels.
        reach_h, reach_w = (p.kh - 1) * p.dilation_h + 1, (p.kw - 1) * p.dilation_w + 1
        high, wide = reach_h + 4 * p.stride_h - p.pad_top, reach_w + 6 * p.stride_w - p.pad_left
        c, m = min(p.c // p.group, 8) * p.group, min(p.m // p.group, 9) * p.group
        if p.group > 16:
            c, m = p.c, p.m
        own = replace(p, n=2, c=c, m=m, h=max(1, min(p.h, high)), w=max(1, min(p.w, wide)))
        yield "own", sized(own)

    def of_squares(self) -> Conv:
        return replace(self, activation=None, dtype="float32")

    @property
    def words(self) -> str:
        p = self
        parts = [f"{p.n}×{p.c}×{p.h}×{p.w} → {p.m}×{p.out_h}×{p.out_w}", f"kernel {p.kh}×{p.kw}"]
        parts += window_words(p)
        parts += [f"group {p.group}"] if p.group > 1 else []
        parts += ["bias"] if p.bias else []
        parts += [p.activation] if p.activation else []
        return ", ".join(parts)
