"""Convolution and pooling in one: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from kernels.errors import KernelError
from kernels.ops._base import Params, Scalar, Shape
from kernels.ops._windows import sized, touched
from kernels.ops.conv import Conv
from kernels.ops.pool import Pool


@dataclass(frozen=True)
class ConvPool(Params):
    """Convolution with its bias and activation, then pooling of what it gives, with an activation of its own.

    Tensors in order: x (n, c, h, w), weight (m, c // group, kh, kw), bias (m,) if `conv.bias`; y (n, m,
    pool.out_h, pool.out_w). Raises KernelError where `pool` does not read what `conv` gives.
    """

    op: ClassVar[str] = "conv_pool"
    struct: ClassVar[str] = (
        f"{Conv.struct};"
        "int pool_kind, pool_kh, pool_kw, pool_out_h, pool_out_w, pool_stride_h, pool_stride_w;"
        "int pool_pad_top, pool_pad_left, pool_pad_bottom, pool_pad_right, pool_dilation_h, pool_dilation_w;"
        "int count_include_pad, pool_activation"
    )
    units: ClassVar[str] = "n"
    most_inputs: ClassVar[int] = 3
    weight_inputs: ClassVar[tuple[int, ...]] = (1, 2)
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = Pool.enumerated
    axes: ClassVar[tuple[str, ...]] = Conv.axes
    images: ClassVar[bool] = True

    conv: Conv
    pool: Pool

    def __post_init__(self) -> None:
        conv, pool = self.conv, self.pool
        conv_output = (conv.n, conv.m, conv.out_h, conv.out_w, conv.dtype)
        if conv_output != (pool.n, pool.c, pool.h, pool.w, pool.dtype):
            raise KernelError(f"{pool} does not read what {conv} gives")

    def of_images(self, n: int) -> ConvPool:
        """The same of so many images."""
        return ConvPool(replace(self.conv, n=n), replace(self.pool, n=n))

    @property
    def n(self) -> int:
        return self.conv.n

    @property
    def c(self) -> int:
        return self.conv.c

    @property
    def m(self) -> int:
        return self.conv.m

    @property
    def kh(self) -> int:
        """Of the convolution's window, as kw."""
        return self.conv.kh

    @property
    def kw(self) -> int:
        return self.conv.kw

    @property
    def group(self) -> int:
        return self.conv.group

    @property
    def bias(self) -> bool:
        return self.conv.bias

    @property
    def kind(self) -> str:
        """The pool's."""
        return self.pool.kind

    @property
    def dtype(self) -> str:
        return self.conv.dtype

    @property
    def weights(self) -> int:
        """Elements of the weights."""
        return self.conv.weights

    @property
    def image(self) -> int:
        """Elements of one image of x."""
        return self.conv.image

    @property
    def flops(self) -> int:
        return self.conv.flops + self.pool.flops

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return self.conv.input_shapes

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.pool.output_shape

    def least_flops(self, method: str) -> float:
        """What the pool never looks at need not be worked out."""
        unseen = self.conv.outputs - self.pool.least_read()
        return max(0.0, self.conv.least_flops(method) - unseen * (self.conv.flops // self.conv.outputs))

    def least_read(self) -> int:
        return touched(self.conv)

    def _of_rows(self, count: int) -> ConvPool:
        return self.of_images(count)

    def scalars(self) -> tuple[Scalar, ...]:
        kind, _, _, _, _, *window = self.pool.scalars()  # without the sizes of x
        return (*self.conv.scalars(), kind, *window)

    def small_shapes(self) -> Iterator[Shape]:
        """Each small convolution under a plain pool, a plain convolution under each small pool, and the timed
        shape's own windows, of few images and channels."""
        p = self
        for tag, conv in p.conv.small():
            halves = Pool(p.pool.kind, 0, 0, 0, 0, min(2, conv.out_h), min(2, conv.out_w), 0, 0, 2, 2)
            if tag != "own":
                yield Shape(tag, _over(conv, halves))
            elif p.pool.kh * p.pool.dilation_h <= conv.out_h and p.pool.kw * p.pool.dilation_w <= conv.out_w:
                yield Shape(tag, _over(conv, p.pool))
            else:
                yield Shape(tag, _over(replace(p.conv, n=2, c=conv.c, m=conv.m), p.pool))
        for tag, pool in replace(p.pool, n=2, c=3).small().items():
            conv = Conv(2, 2, pool.h + 2, pool.w + 1, 3, 3, 2, pool.h, pool.w, bias=True)
            yield Shape(tag, ConvPool(conv, pool))
            if tag == "plain":
                yield Shape("activation", ConvPool(conv, replace(pool, activation="tanh")))

    def of_squares(self) -> ConvPool:
        return ConvPool(self.conv.of_squares(), replace(self.pool, activation=None, dtype="float32"))

    @property
    def words(self) -> str:
        pool = self.pool
        return f"{self.conv.words}; then → {pool.out_h}×{pool.out_w}, {pool.words_of_window}"


def _over(conv: Conv, pool: Pool) -> ConvPool:
    """The pool's window over what the convolution gives."""
    return ConvPool(conv, sized(replace(pool, n=conv.n, c=conv.m, h=conv.out_h, w=conv.out_w)))
