"""Comparisons, with NumPy broadcasting; IsNaN and IsInf by them: a NaN differs from itself."""

from __future__ import annotations

import math

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, Scope, kernel
from engine.ops.binary import broadcast, one_type, walks
from engine.ops.unary import unary
from kernels.ops import FLOATS
from kernels.ops.compare import Compare

_KINDS = {
    "Equal": "equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
}
OP_TYPES = (*_KINDS, "IsInf", "IsNaN")


def lower(node: Node, scope: Scope) -> Lowered:
    """a, b → y of their broadcast shape and bool; of IsNaN and IsInf x → y."""
    if node.op_type in ("IsInf", "IsNaN"):
        return _ends(node, scope)
    a, b = node.inputs
    dtype, shapes = one_type(node.inputs, scope), (scope.shape(a), scope.shape(b))
    shape = broadcast(*shapes)
    return kernel(node, _params(_KINDS[node.op_type], shape, *shapes, dtype=dtype), (a, b), shape, "bool")


def _params(kind: str, shape: tuple[int, ...], *operands: tuple[int, ...], dtype: str) -> Compare:
    sizes, (first, second) = walks(shape, *operands)
    return Compare(kind=kind, shape=sizes, strides_a=first, strides_b=second, dtype=dtype)


def _ends(node: Node, scope: Scope) -> Lowered:
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    if dtype not in FLOATS:
        raise Refused(f"its input is of {dtype}, and floating point is wanted")
    specs = {output: TensorSpec(shape, "bool")}
    if node.op_type == "IsNaN":
        itself = f"{output}:itself"
        specs[itself] = specs[output]
        equal = Kernel(_params("equal", shape, shape, shape, dtype=dtype), (x, x), itself)
        return Lowered((equal, Kernel(unary("not", shape, "bool"), (itself,), output)), specs)
    below, above = (bool(node.attributes.get(f"detect_{which}", 1)) for which in ("negative", "positive"))
    if not below and not above:
        return Lowered((), specs, {output: np.zeros(shape, np.bool_)})
    items: list[Kernel] = []
    if below and above:
        size = f"{output}:size"
        specs[size] = TensorSpec(shape, dtype)
        items.append(Kernel(unary("abs", shape, dtype), (x,), size))
        x = size
    end = f"{output}:end"
    specs[end] = TensorSpec((), dtype)
    items.append(Kernel(_params("equal", shape, shape, (), dtype=dtype), (x, end), output))
    return Lowered(tuple(items), specs, {end: np.array(math.inf if above else -math.inf, dtype)})
