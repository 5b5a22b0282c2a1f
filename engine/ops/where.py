"""Where, with NumPy broadcasting."""

from __future__ import annotations

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, operator
from engine.ops.binary import broadcast, one_type, walks
from kernels.ops.where import Where


@operator("Where")
def lower(node: Node, scope: Scope) -> Lowered:
    """condition, a, b → y of their broadcast shape."""
    if (given := scope.spec(node.inputs[0]).dtype) != "bool":
        raise Refused(f"its condition is of {given}, and truth values are wanted")
    dtype, shapes = one_type(node.inputs[1:], scope), [scope.shape(name) for name in node.inputs]
    shape = broadcast(*shapes)
    sizes, (c, a, b) = walks(shape, *shapes)
    where = Where(shape=sizes, strides_c=c, strides_a=a, strides_b=b, dtype=dtype)
    return kernel(node, where, tuple(node.inputs), shape, dtype)
