"""Element-wise activations."""

from __future__ import annotations

import math

from engine.graph.graph import Node
from engine.ops._base import Lowered, Scope, kernel
from kernels.ops.unary import Unary

OP_TYPES = ("Relu", "Sigmoid", "Tanh")


def lower(node: Node, scope: Scope) -> Lowered:
    """x → y of the same shape."""
    x = node.inputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    unary = Unary(kind=node.op_type.lower(), size=math.prod(shape), dtype=dtype)
    return kernel(node, unary, (x,), shape, dtype)
