"""Functions of one element, whose parameters are attributes, and Clip."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, operator, optional_input, view
from engine.ops._nodes import Nodes
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


# ----------------------------------------------------------------------------------------------------- clip

# Clip: a Relu from 0 on, a function of two bounds where they are known, else a maximum and a minimum.


@dataclass
class _Bound:
    """name: of the tensor that holds it, "" where that is to be made of `value`."""

    name: str = ""
    value: np.generic | None = None


@operator("Clip")
def _clip(node: Node, scope: Scope) -> Lowered:
    """x → y of the same shape. Bounds are attributes before opset 11, inputs from then on; without any it is
    x itself."""
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    if dtype not in FLOATS and np.dtype(dtype).kind not in "iu":
        raise Refused(f"it computes in {dtype}, and numbers are supported")
    low, high = (_bound(node, scope, index, name, dtype) for index, name in ((1, "min"), (2, "max")))
    if low is None and high is None:
        return view(node, scope, shape)
    signed = dtype in FLOATS or np.dtype(dtype).kind == "i"
    if low is not None and high is None and low.value == 0 and signed:
        return kernel(node, unary("relu", shape, dtype), (x,), shape, dtype)
    known = [float(bound.value) for bound in (low, high) if bound is not None and bound.value is not None]
    if len(known) == 2 and dtype in ("float32", "float16"):
        return kernel(node, unary("clip", shape, dtype, *known), (x,), shape, dtype)
    nodes = Nodes(node, scope)
    for kind, bound in (("Max", low), ("Min", high)):
        if bound is not None:
            limit = nodes.constant(bound.value, dtype) if bound.value is not None else bound.name
            if nodes.shape(limit):
                limit = nodes.shaped(limit, ())
            x = nodes(kind, x, limit, output=output if kind == "Min" or high is None else "")
    return nodes.lowered()


def _bound(node: Node, scope: Scope, index: int, name: str, dtype: str) -> _Bound | None:
    """None where nothing is bounded. Raises Refused for one that is no single number of the type."""
    value = node.attributes.get(name)
    if scope.opset >= 11:
        input_name = optional_input(node, index)
        if not input_name:
            return None
        spec = scope.spec(input_name)
        if spec.dtype != dtype or any(size != 1 for size in spec.shape):
            raise Refused(
                f"its {name} is {spec.dtype} of shape {spec.shape}, and one number of {dtype} is wanted"
            )
        if input_name not in scope.constants:
            return _Bound(input_name)
        value = scope.constants[input_name].reshape(-1)[0]
    if value is None:
        return None
    # A bound at the end of what the type holds bounds nothing.
    numbers = ml_dtypes.finfo(dtype) if dtype in FLOATS else np.iinfo(dtype)
    if value <= numbers.min if name == "min" else value >= numbers.max:
        return None
    return _Bound(value=np.dtype(dtype).type(value))
