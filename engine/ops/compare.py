"""Comparisons, with NumPy broadcasting; IsNaN and IsInf by them: a NaN differs from itself."""

from __future__ import annotations

import math

import numpy as np

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, operator
from engine.ops._nodes import Nodes, written
from engine.ops.binary import broadcast, one_type, walks
from kernels.ops import FLOATS
from kernels.ops.compare import Compare

_KINDS = {
    "Equal": "equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
}


@operator(*_KINDS)
def lower(node: Node, scope: Scope) -> Lowered:
    """a, b → y of their broadcast shape and bool."""
    a, b = node.inputs
    dtype, shapes = one_type(node.inputs, scope), (scope.shape(a), scope.shape(b))
    shape = broadcast(*shapes)
    sizes, (first, second) = walks(shape, *shapes)
    kind = _KINDS[node.op_type]
    params = Compare(kind=kind, shape=sizes, strides_a=first, strides_b=second, dtype=dtype)
    return kernel(node, params, (a, b), shape, "bool")


@written("IsInf", "IsNaN")
def _ends(node: Node, nodes: Nodes) -> None:
    """x → y of its shape and bool."""
    x, shape, dtype = nodes.around.first(node)
    output = node.outputs[0]
    if dtype not in FLOATS:
        raise Refused(f"its input is of {dtype}, and floating point is wanted")
    if node.op_type == "IsNaN":
        nodes("Not", nodes("Equal", x, x), output=output)
        return
    below, above = (bool(node.attributes.get(f"detect_{which}", 1)) for which in ("negative", "positive"))
    if not below and not above:
        nodes.constant(np.zeros(shape, np.bool_), output=output)
        return
    end = nodes.constant(math.inf if above else -math.inf, dtype)
    nodes("Equal", nodes("Abs", x) if below and above else x, end, output=output)
