"""Matrix product of eight-bit numbers: what its kernels are told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernels.ops._base import Scalar, int32
from kernels.ops._quantized import Quantized
from kernels.ops.gemm import Gemm


@dataclass(frozen=True)
class QGemm(Quantized):
    """Matrix product of uint8 or int8 matrices with sums in int32 (kernels.ops._quantized), `batch` times.

    Tensors in order: a (batch, m, k); b (batch, k, n), or (batch, n, k) if `trans_b`, each one for all where
    its stride is 0; a_zero (1,); b_zero (1,) or (n,); where `to` is not int32 bias (n,) and scale (n,); if
    `shifted` shift (n,); y (batch, m, n). a is never transposed.
    """

    op: ClassVar[str] = "qgemm"
    struct: ClassVar[str] = (
        f"int m, n, k, trans_b, batch; index_t stride_a, stride_b; {Quantized.struct_behind}"
    )
    axes: ClassVar[tuple[str, ...]] = Gemm.axes

    gemm: Gemm

    @property
    def product(self) -> Gemm:
        return self.gemm

    @property
    def m(self) -> int:
        return self.gemm.m

    @property
    def trans_b(self) -> bool:
        return self.gemm.trans_b

    @property
    def batch(self) -> int:
        return self.gemm.batch

    def of(self, product: Gemm) -> QGemm:
        return replace(self, gemm=product, weight_zeros=product.n if self.weight_zeros > 1 else 1)

    def _product_scalars(self) -> tuple[Scalar, ...]:
        p = self.product
        return (*int32(p.m, p.n, p.k, p.trans_b, p.batch), np.int64(p.stride_a), np.int64(p.stride_b))
