"""Flatten: to two axes, split before `axis`."""

from __future__ import annotations

import math

from engine.graph.graph import Node
from engine.ops._base import Lowered, Scope, normal_axis, operator, view


@operator("Flatten")
def lower(node: Node, scope: Scope) -> Lowered:
    """x → the same bytes as (product before axis, product from axis on)."""
    shape = scope.shape(node.inputs[0])
    axis = normal_axis(int(node.attributes.get("axis", 1)), len(shape), inclusive=True)
    return view(node, scope, (math.prod(shape[:axis]), math.prod(shape[axis:])))
