"""Matrix product: what its kernels are told."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from kernels.ops._base import (
    Division,
    Params,
    Shape,
    undivided,
)

SMALLEST = 16  # factors below which nothing is gained by halving them once more


@dataclass(frozen=True)
class Gemm(Params):
    """Matrix product, y = activation(alpha · op(a) · op(b) + beta · bias), `batch` times.

    Tensors in order: a (batch, m, k) or (batch, k, m) if `trans_a`; b (batch, k, n) or (batch, n, k) if
    `trans_b`; bias if `bias`; y (batch, m, n). `stride_a` and `stride_b` are elements between batches (0: the
    same matrix for all). The bias element of (row, column) lies at row · bias_stride_m + column ·
    bias_stride_n,
    the same for every batch.
    """

    op: ClassVar[str] = "gemm"
    struct: ClassVar[str] = (
        "int m, n, k, trans_a, trans_b; float alpha, beta;"
        "index_t bias_stride_m, bias_stride_n, stride_a, stride_b; int batch, activation"
    )
    units: ClassVar[str] = "m"
    most_inputs: ClassVar[int] = 3
    weight_inputs: ClassVar[tuple[int, ...]] = (1, 2)
    axes: ClassVar[tuple[str, ...]] = ("matrix", "row", "column")

    m: int
    n: int
    k: int
    trans_a: bool = False
    trans_b: bool = False
    alpha: float = 1.0
    beta: float = 1.0
    bias: bool = False
    bias_stride_m: int = 0
    bias_stride_n: int = 1
    batch: int = 1
    stride_a: int = 0
    stride_b: int = 0
    activation: str | None = None
    dtype: str = "float32"

    @property
    def weights(self) -> int:
        """Elements of b."""
        return self.n * self.k * (self.batch if self.stride_b else 1)

    @property
    def flops(self) -> int:
        return 2 * self.batch * self.m * self.n * self.k

    def least_flops(self, method: str) -> float:
        """Strassen's way saves an eighth each time that it halves the factors."""
        halved = int(math.log2(max(1.0, min(self.m, self.n, self.k) / SMALLEST)))
        return self.flops * ((7 / 8) ** halved if method == "strassen" else 1.0)

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        a = (self.k, self.m) if self.trans_a else (self.m, self.k)
        b = (self.n, self.k) if self.trans_b else (self.k, self.n)
        shift = (self.m if self.bias_stride_m else 1, self.n if self.bias_stride_n else 1)
        bias = (shift,) if self.bias else ()
        return ((self.batch if self.stride_a else 1, *a), (self.batch if self.stride_b else 1, *b), *bias)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.batch, self.m, self.n)

    @property
    def rows(self) -> int | None:
        """Those of one product's a."""
        alone = self.batch == 1 and not self.trans_a and not (self.bias and self.bias_stride_m)
        return self.m if alone else None

    @property
    def output_rows(self) -> tuple[int, ...]:
        """Of one product without the axis of its batch."""
        return self.output_shape[1:] if self.batch == 1 else self.output_shape

    @property
    def division(self) -> Division:
        p, none = self, (0,) * self.bias
        if p.batch > 1:
            inputs = (p.stride_a, p.stride_b, *none)
            return Division(p.batch, inputs, p.m * p.n, lambda count: replace(p, batch=count))
        bias = (p.bias_stride_m, p.bias_stride_n)
        # Parts by rows read all of b, parts by columns all of a: the smaller one is read again.
        by_columns = p.n > p.m and p.trans_b and p.dtype == "float32"
        if by_columns and (not p.bias or bias in ((0, 0), (0, 1))):
            inputs = (0, p.k) + (p.bias_stride_n,) * p.bias
            return Division(p.n, inputs, 1, lambda count: replace(p, n=count), columns=True)
        by_rows = not p.trans_a and p.n * p.k <= p.m * (p.n + p.k)
        if by_rows and (not p.bias or bias in ((0, 0), (0, 1), (1, 0))):
            inputs = (p.k, 0) + (p.bias_stride_m,) * p.bias
            return Division(p.m, inputs, p.n, p._of_rows)
        return undivided(p)

    def small_shapes(self) -> Iterator[Shape]:
        p = self
        one = replace(p, batch=1, stride_a=0, stride_b=0)
        yield Shape("plain", replace(one, m=min(p.m, 5), n=min(p.n, 7), k=min(p.k, 9), bias=False,
                                     activation=None))  # fmt: skip
        small = replace(one, n=67, k=45, bias_stride_m=0, bias_stride_n=1)
        yield Shape("size", replace(small, m=min(p.m, 37)))
        yield Shape("bias", replace(small, m=min(p.m, 3), bias=True))
        yield Shape("activation", replace(small, m=min(p.m, 3), activation="tanh"))
        if p.batch > 1:
            three = replace(small, m=min(p.m, 3), n=9, k=13, batch=3)
            yield Shape("batch", replace(three, stride_a=three.m * 13 if p.stride_a else 0,
                                         stride_b=9 * 13 if p.stride_b else 0))  # fmt: skip

    def of_squares(self) -> Gemm:
        return replace(self, alpha=self.alpha**2, beta=self.beta**2, activation=None, dtype="float32")
