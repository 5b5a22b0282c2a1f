"""Functions of one element: what their kernels are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kernels.ops._axes import OneByOne

UNARY_KINDS = (
    *("relu", "tanh", "sigmoid", "identity"),
    # max(lower, min(upper, x)) and lines with a corner: parameters alpha, and beta behind it
    *("clip", "leaky_relu", "thresholded_relu", "hard_sigmoid", "hard_swish", "shrink"),
    # smooth ones
    *("elu", "selu", "celu", "softplus", "softsign", "gelu", "gelu_tanh", "swish", "mish"),
    *("exp", "log", "sqrt", "pow", "reciprocal", "erf"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"),
    # those that whole numbers have, too, and of truth values
    *("abs", "neg", "sign", "floor", "ceil", "round", "not"),
)


@dataclass(frozen=True)
class Unary(OneByOne):
    """An element-wise function, `kind` one of UNARY_KINDS. Tensors in order: x (size,); y (size,).

    `alpha` and `beta` are what ONNX calls so, or the function's first and second parameter: the lower and the
    upper bound (clip), alpha and gamma (selu), lambd and bias (shrink), the exponent (pow); both are 0 where
    a function has none.
    """

    op: ClassVar[str] = "unary"
    struct: ClassVar[str] = "index_t size; int kind; float alpha, beta"
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {"kind": ("UNARY", UNARY_KINDS)}

    kind: str
    size: int
    dtype: str = "float32"
    alpha: float = 0.0
    beta: float = 0.0

    @property
    def flops(self) -> int:
        return 0 if self.kind == "identity" else self.size
