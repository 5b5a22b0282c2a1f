"""Softmax and LogSoftmax."""

from __future__ import annotations

import math

from engine.graph.graph import Node
from engine.ops._base import Lowered, Scope, kernel, normal_axis, operator
from kernels.ops.softmax import Softmax


@operator("LogSoftmax", "Softmax")
def lower(node: Node, scope: Scope) -> Lowered:
    """x → y of the same shape.

    Before opset 13 the input is taken as a matrix split before `axis` (default 1) and every row is
    normalised; from 13 on `axis` alone (default the last) is.
    """
    x, shape, dtype = scope.first(node)
    if scope.opset < 13:
        # axis == rank is in the range of the old text: rows of one element.
        axis = normal_axis(int(node.attributes.get("axis", 1)), len(shape), inclusive=True)
        outer, along, inner = math.prod(shape[:axis]), math.prod(shape[axis:]), 1
    else:
        axis = normal_axis(int(node.attributes.get("axis", -1)), len(shape))
        outer, along, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    softmax = Softmax(outer=outer, axis=along, inner=inner, log=node.op_type == "LogSoftmax", dtype=dtype)
    return kernel(node, softmax, (x,), shape, dtype)
