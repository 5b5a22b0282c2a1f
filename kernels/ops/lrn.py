"""Local response normalisation: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from kernels.ops._base import Params, Shape

SUM = "int size; float scale, beta, bias"  # what the device is told, but for the sizes of x


@dataclass(frozen=True)
class Lrn(Params):
    """Local response normalisation across channels, as ONNX's LRN: y = x / (bias + alpha / size · Σ x²)^beta.

    The sum runs over channels c − ⌊(size−1)/2⌋ … c + ⌈(size−1)/2⌉ that exist.
    Tensors in order: x (n, c, inner); y the same.
    """

    op: ClassVar[str] = "lrn"
    struct: ClassVar[str] = f"int n, c; index_t inner; {SUM}"
    units: ClassVar[str] = "n"
    axes: ClassVar[tuple[str, ...]] = ("image", "channel", "row", "pixel")
    images: ClassVar[bool] = True

    n: int
    c: int
    inner: int
    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        return self.n * self.c * self.inner * (2 * self.size + 3)

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.n, self.c, 1, self.inner),)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.n, self.c, 1, self.inner)

    @property
    def scale(self) -> float:
        """What the sum of squares is multiplied by."""
        return self.alpha / self.size

    def small_shapes(self) -> Iterator[Shape]:
        less = replace(self, n=2, c=min(self.c, 19), inner=min(self.inner, 35))
        yield Shape("own", less)
        yield from (Shape("size", replace(less, c=7, inner=16, size=size)) for size in (1, 4, 9))
        yield Shape("all", replace(less, n=3, c=33, inner=40, size=3, alpha=0.5, beta=0.6, bias=2.0))
