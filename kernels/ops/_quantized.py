"""Products of eight-bit numbers: what the records of quantized convolutions and matrix products share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from kernels.ops._base import ITEMSIZE, Division, Params, Scalar, Shape, int32
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm

EIGHT_BITS = ("uint8", "int8")
FEWER_BITS = ("uint4", "int4", "uint2", "int2")  # which int8 holds
LARGEST = 255  # of a factor less its zero point
TOO_MANY = 2**31 // LARGEST**2  # so many products stay within 32 bits; one more may not


@dataclass(frozen=True)
class Quantized(Params):
    """Sums of products of whole numbers, each less the zero point of its tensor: sum = Σ (x − x_zero) ·
    (weight − weight_zero), in 32 bits. What lies outside an image adds nothing.

    `to` int32: y is the sum. Else real = (sum + bias) · scale + shift in double precision; y is that in
    float32, or in eight bits: round(real / out_scale) + out_zero, halves to the even neighbour, held between
    low and high. An activation behind the product is in these two.

    Tensors in order: x; weight; x_zero (1,), of x's type; weight_zero (weight_zeros,), of the weight's; where
    `to` is not int32 bias (channels,), int32, and scale (channels,), float64; if `shifted` shift (channels,),
    float64; y. channels are the maps of a convolution and the columns of a matrix product, `product`, whose
    own bias, factors and activation are none.
    """

    struct_behind: ClassVar[str] = (
        "int x_type, weight_type, weight_zeros, to; float out_scale; int out_zero, low, high"
    )
    most_inputs: ClassVar[int] = 7
    weight_inputs: ClassVar[tuple[int, ...]] = (1, 2, 3, 4, 5, 6)

    _: KW_ONLY
    dtype: str = "uint8"
    weight_dtype: str = "int8"
    weight_zeros: int = 1
    to: str = "int32"
    shifted: bool = False
    out_scale: float = 1.0
    out_zero: int = 0
    low: int = 0
    high: int = 255

    @property
    @abstractmethod
    def product(self) -> Conv | Gemm:
        """The same product of real numbers."""

    @abstractmethod
    def of(self, product: Any) -> Quantized:
        """The same of another product, with one zero point for each channel where there are several."""

    @property
    def channels(self) -> int:
        return self.product.m if isinstance(self.product, Conv) else self.product.n

    @property
    def terms(self) -> int:
        """Products of one sum."""
        if isinstance(self.product, Gemm):
            return self.product.k
        return self.product.weights // self.product.m

    @property
    def out_dtype(self) -> str:
        return self.to

    @property
    def flops(self) -> int:
        return self.product.flops

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        x, weight = self.product.input_shapes
        behind = (len(self.input_dtypes) - 4) * ((self.channels,),)
        return (x, weight, (1,), (self.weight_zeros,), *behind)

    @property
    def input_dtypes(self) -> tuple[str, ...]:
        behind = () if self.to == "int32" else ("int32", "float64", *("float64",) * self.shifted)
        return (self.dtype, self.weight_dtype, self.dtype, self.weight_dtype, *behind)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.product.output_shape

    def least_read(self) -> int:
        return self.product.least_read()

    @property
    def rows(self) -> int | None:
        return self.product.rows

    def _of_rows(self, count: int) -> Quantized:
        return self.of(self.product.of_rows(count))

    @property
    def output_rows(self) -> tuple[int, ...]:
        return self.product.output_rows

    def scalars(self) -> tuple[Scalar, ...]:
        kinds = tuple(ITEMSIZE)
        types = (kinds.index(self.dtype), kinds.index(self.weight_dtype), self.weight_zeros)
        return (
            *self._product_scalars(),
            *int32(*types, kinds.index(self.to)),
            np.float32(self.out_scale),
            *int32(self.out_zero, self.low, self.high),
        )

    @abstractmethod
    def _product_scalars(self) -> tuple[Scalar, ...]: ...

    @property
    def division(self) -> Division:
        """As the product divides; columns of several rows do not lie together, and are left to the rows."""
        p, whole = self.product, self.product.division
        if isinstance(p, Gemm) and whole.columns and p.m > 1:
            whole = Division(p.m, (p.k, 0), p.n, p.of_rows)
        by_channels = whole.columns or (isinstance(p, Conv) and p.n == 1)
        each = self.channels // whole.length if by_channels else 0
        behind = (len(self.input_dtypes) - 4) * (each,)
        inputs = (*whole.inputs[:2], 0, each if self.weight_zeros > 1 else 0, *behind)
        return replace(whole, inputs=inputs, cut=lambda count: self.of(whole.cut(count)), columns=False)

    def small_shapes(self) -> Iterator[Shape]:
        for shape in self.product.small_shapes():
            if shape.tag not in ("bias", "activation"):  # which are other tensors here, and limits
                params = self.of(replace(shape.params, **_BARE[type(self.product)]))
                yield Shape(shape.tag, params)
                if shape.tag == "size":
                    several = 1 if self.weight_zeros > 1 else params.channels
                    yield Shape("zeros", replace(params, weight_zeros=several))
                    if self.to in EIGHT_BITS:  # by a power of two, of which ties are drawn
                        yield Shape("ties", replace(params, out_scale=0.25))
                    if self.to != "int32":
                        yield Shape("shift", replace(params, shifted=not self.shifted))

    @property
    def words(self) -> str:
        parts = [self.product.words, f"{self.dtype} × {self.weight_dtype} → {self.to}"]
        parts += ["a zero point a channel"] if self.weight_zeros > 1 else []
        parts += ["shift"] if self.shifted else []
        if self.to in EIGHT_BITS:
            parts.append(
                f"scale {self.out_scale:g}, zero {self.out_zero}, between {self.low} and {self.high}"
            )
        return ", ".join(parts)


_BARE: dict[type, dict[str, Any]] = {
    Conv: {"bias": False, "activation": None},
    Gemm: {"bias": False, "activation": None, "alpha": 1.0, "beta": 1.0},
}
