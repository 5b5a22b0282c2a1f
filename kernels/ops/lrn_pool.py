"""Local response normalisation and pooling in one: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from kernels.ops._base import Params, Shape
from kernels.ops._windows import touched
from kernels.ops.lrn import SUM, Lrn
from kernels.ops.pool import WINDOW, Pool


@dataclass(frozen=True)
class LrnPool(Params):
    """Local response normalisation, then pooling of what it gives: fields as in Lrn and Pool.

    Of eight bits x is (q − x_zero) · x_scale, as DequantizeLinear has it, and y is round(v / out_scale) +
    out_zero of what is pooled, halves to the even neighbour, within what `to` holds, as QuantizeLinear has
    it.

    Tensors in order: x (n, c, h, w); y (n, c, out_h, out_w).
    """

    op: ClassVar[str] = "lrn_pool"
    struct: ClassVar[str] = f"{WINDOW}; {SUM}; float alpha, x_scale, out_scale; int x_zero, out_zero"
    units: ClassVar[str] = "n"
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = Pool.enumerated
    axes: ClassVar[tuple[str, ...]] = Pool.axes
    images: ClassVar[bool] = True

    size: int
    kind: str
    n: int
    c: int
    h: int
    w: int
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
    count_include_pad: bool = False
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0
    dtype: str = "float32"
    to: str = "float32"
    x_scale: float = 1.0
    x_zero: int = 0
    out_scale: float = 1.0
    out_zero: int = 0

    @classmethod
    def of(cls, lrn: Lrn, pool: Pool) -> LrnPool:
        """Both in one; `pool` reads what `lrn` gives and has no activation."""
        window = {f.name: getattr(pool, f.name) for f in fields(pool) if f.name != "activation"}
        return cls(size=lrn.size, alpha=lrn.alpha, beta=lrn.beta, bias=lrn.bias, **window)

    @property
    def lrn(self) -> Lrn:
        """The first half."""
        return Lrn(self.n, self.c, self.h * self.w, self.size, self.alpha, self.beta, self.bias)

    @property
    def pool(self) -> Pool:
        """The second half."""
        return Pool(**{name: getattr(self, name) for name in _WINDOW})

    @property
    def out_dtype(self) -> str:
        return self.to

    @property
    def flops(self) -> int:
        return self.lrn.flops + self.pool.flops

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return self.pool.input_shapes

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.pool.output_shape

    def least_read(self) -> int:
        return touched(self.pool)

    @property
    def scale(self) -> float:
        """What the sum of squares is multiplied by."""
        return self.lrn.scale

    def small_shapes(self) -> Iterator[Shape]:
        both = replace(self, n=2, c=min(self.c, 19))
        yield Shape("own", both)
        small = both.pool.small()
        for tag, shape in small.items():
            yield Shape(tag, replace(both, **{name: getattr(shape, name) for name in _WINDOW}))

    @property
    def words(self) -> str:
        words = f"{self.pool.words}, of LRN over {self.size} channels"
        return words if self.dtype == "float32" else f"{words}, {self.dtype} → {self.to}"


_WINDOW = {f.name for f in fields(Pool)} - {"activation", "dtype"}
