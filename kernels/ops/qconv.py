"""Convolution of eight-bit numbers: what its kernels are told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from kernels.ops._base import Scalar
from kernels.ops._quantized import Quantized
from kernels.ops.conv import Conv


@dataclass(frozen=True)
class QConv(Quantized):
    """2-D convolution of uint8 or int8 images and weights with sums in int32 (kernels.ops._quantized).

    Tensors in order: x (n, c, h, w); weight (m, c // group, kh, kw); x_zero (1,); weight_zero (1,) or (m,);
    where `to` is not int32 bias (m,) and scale (m,); if `shifted` shift (m,); y (n, m, out_h, out_w).
    """

    op: ClassVar[str] = "qconv"
    struct: ClassVar[str] = f"{Conv.struct.removesuffix(', activation')}; {Quantized.struct_behind}"
    axes: ClassVar[tuple[str, ...]] = Conv.axes
    images: ClassVar[bool] = True

    conv: Conv

    @property
    def product(self) -> Conv:
        return self.conv

    @property
    def depthwise(self) -> bool:
        """As of the convolution, and so are its strides and dilations."""
        return self.conv.depthwise

    @property
    def stride_h(self) -> int:
        return self.conv.stride_h

    @property
    def stride_w(self) -> int:
        return self.conv.stride_w

    @property
    def dilation_h(self) -> int:
        return self.conv.dilation_h

    @property
    def dilation_w(self) -> int:
        return self.conv.dilation_w

    def of(self, product: Conv) -> QConv:
        return replace(self, conv=product, weight_zeros=product.m if self.weight_zeros > 1 else 1)

    def _product_scalars(self) -> tuple[Scalar, ...]:
        return self.product.scalars()[:-1]  # but for the activation
