"""Element-wise arithmetic of two operands: what its kernels are told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from kernels.ops._axes import Broadcast
from kernels.ops._base import Scalar, Shape, activation_code, int32

BINARY_KINDS = (
    *("add", "sub", "mul", "div"),
    # Two remainders: of the sign of b, and of that of a.
    *("pow", "max", "min", "mod", "fmod", "prelu"),
    # Of truth values.
    *("and", "or", "xor"),
)


@dataclass(frozen=True)
class Binary(Broadcast):
    """Element-wise arithmetic with broadcasting, `kind` one of BINARY_KINDS, then `activation`.

    Tensors in order: a, b; y of `shape`. `strides_a` and `strides_b` are elements a step along each axis of
    `shape` (0 where that operand is broadcast).
    """

    op: ClassVar[str] = "binary"
    struct: ClassVar[str] = "index_t size, dims[6], strides_a[6], strides_b[6]; int kind, activation"
    most_inputs: ClassVar[int] = 2
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {"kind": ("BINARY", BINARY_KINDS)}

    kind: str
    shape: tuple[int, ...]
    strides_a: tuple[int, ...]
    strides_b: tuple[int, ...]
    activation: str | None = None
    dtype: str = "float32"

    @property
    def strides(self) -> tuple[tuple[int, ...], ...]:
        return self.strides_a, self.strides_b

    def scalars(self) -> tuple[Scalar, ...]:
        tail = int32(BINARY_KINDS.index(self.kind), activation_code(self.activation))
        return (*self.places(), *tail)

    def small_shapes(self) -> Iterator[Shape]:
        yield from super().small_shapes()
        if self.dtype == "float32":
            dense = replace(self, shape=(37,), strides_a=(1,), strides_b=(1,))
            yield Shape("activation", replace(dense, activation="tanh"))
