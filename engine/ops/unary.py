"""Functions of one element; their parameters are attributes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, operator
from kernels.ops import FLOATS
from kernels.ops.unary import Unary

# By op type the attributes that are the kernel's alpha and beta, with what they are where they are absent.
_PARAMETERS: Mapping[str, Mapping[str, float]] = {
    "Celu": {"alpha": 1.0},
    "Elu": {"alpha": 1.0},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "LeakyRelu": {"alpha": 0.01},
    "Selu": {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
    "Shrink": {"lambd": 0.5, "bias": 0.0},
    "Swish": {"alpha": 1.0},
    "ThresholdedRelu": {"alpha": 1.0},
}
_KINDS: Mapping[str, str] = {
    **{name: name.lower() for name in ("Celu", "Elu", "Gelu", "Mish", "Relu", "Selu", "Shrink", "Swish")},
    **{name: name.lower() for name in ("Abs", "Ceil", "Erf", "Exp", "Floor", "Log", "Neg", "Not", "Round")},
    **{name: name.lower() for name in ("Reciprocal", "Sigmoid", "Sign", "Softplus", "Softsign", "Sqrt")},
    **{name: name.lower() for name in ("Acos", "Asin", "Atan", "Cos", "Sin", "Tan")},
    **{name: name.lower() for name in ("Acosh", "Asinh", "Atanh", "Cosh", "Sinh", "Tanh")},
    "HardSigmoid": "hard_sigmoid",
    "HardSwish": "hard_swish",
    "LeakyRelu": "leaky_relu",
    "ThresholdedRelu": "thresholded_relu",
}
# Functions of more than floating point, by the kinds of the types that NumPy knows.
_TYPES = {"relu": "fi", "abs": "fiu", "neg": "fi", "sign": "fiu", "not": "b"}


@operator(*_KINDS)
def lower(node: Node, scope: Scope) -> Lowered:
    """x → y of the same shape."""
    x, kind = node.inputs[0], _KINDS[node.op_type]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    if ("f" if dtype in FLOATS else np.dtype(dtype).kind) not in _TYPES.get(kind, "f"):
        wanted = {"b": "truth values are", "f": "floating point is"}.get(_TYPES.get(kind, "f"), "numbers are")
        raise Refused(f"it computes in {dtype}, and {wanted} supported")
    if kind == "gelu" and (approximate := node.attributes.get("approximate", "none")) != "none":
        if approximate != "tanh":
            raise Refused(f"its approximation is {approximate!r}, and none and tanh are supported")
        kind = "gelu_tanh"
    values = [
        float(node.attributes.get(name, default))
        for name, default in _PARAMETERS.get(node.op_type, {}).items()
    ]
    if kind == "celu" and not values[0]:
        raise Refused("its alpha is 0, by which it divides")
    return kernel(node, unary(kind, shape, dtype, *values), (x,), shape, dtype)


def unary(kind: str, shape: tuple[int, ...], dtype: str, alpha: float = 0.0, beta: float = 0.0) -> Unary:
    return Unary(kind=kind, size=math.prod(shape), dtype=dtype, alpha=alpha, beta=beta)
