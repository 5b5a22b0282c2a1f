"""CumSum and CumProd along a constant axis."""

from __future__ import annotations

import math

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, normal_axis, operator
from kernels.ops.cumulate import Cumulate


@operator("CumProd", "CumSum")
def lower(node: Node, scope: Scope) -> Lowered:
    """x, axis → y of the same shape."""
    x, shape, dtype = scope.first(node)
    given = scope.constant(node, 1, "axis")
    if given is None or given.size != 1:
        raise Refused(f"its axis is {given}, and one number is wanted")
    axis = normal_axis(int(given.reshape(-1)[0]), len(shape))
    params = Cumulate(
        kind="sum" if node.op_type == "CumSum" else "prod",
        outer=math.prod(shape[:axis]),
        axis=shape[axis],
        inner=math.prod(shape[axis + 1 :]),
        exclusive=bool(node.attributes.get("exclusive", 0)),
        reverse=bool(node.attributes.get("reverse", 0)),
        dtype=dtype,
    )
    return kernel(node, params, (x,), shape, dtype)
