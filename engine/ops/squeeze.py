"""Squeeze and Unsqueeze: axes of size 1 removed or put in."""

from __future__ import annotations

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, normal_axis, operator, view


@operator("Squeeze", "Unsqueeze")
def lower(node: Node, scope: Scope) -> Lowered:
    """x → the same bytes. The axes are an attribute before opset 13, a constant input from then on."""
    shape = scope.shape(node.inputs[0])
    given = node.attributes.get("axes") if scope.opset < 13 else scope.integers(node, 1, "axes")
    given = None if given is None else list(given)
    if node.op_type == "Squeeze":
        if given is None:
            return view(node, scope, tuple(size for size in shape if size != 1))
        axes = {normal_axis(axis, len(shape)) for axis in given}
        if any(shape[axis] != 1 for axis in axes):
            raise Refused(f"axes {given} of a tensor of shape {shape} are not all of size 1")
        return view(node, scope, tuple(size for axis, size in enumerate(shape) if axis not in axes))
    if given is None:
        raise Refused("it has no axes")
    rank = len(shape) + len(given)
    axes = {normal_axis(axis, rank) for axis in given}
    if len(axes) != len(given):
        raise Refused(f"its axes {given} name one axis twice")
    sizes = iter(shape)
    return view(node, scope, tuple(1 if axis in axes else next(sizes) for axis in range(rank)))
