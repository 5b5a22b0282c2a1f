"""Reshape: 0 copies a size, −1 is worked out, allowzero takes 0 as it is."""

from __future__ import annotations

import math

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, operator, view


@operator("Reshape")
def lower(node: Node, scope: Scope) -> Lowered:
    """x, constant shape → the same bytes under that shape."""
    wanted = scope.integers(node, 1, "shape")
    if wanted is None:
        raise Refused("it has no shape")
    shape = scope.shape(node.inputs[0])
    return view(node, scope, resolve(shape, wanted, bool(node.attributes.get("allowzero", 0))))


def resolve(shape: tuple[int, ...], wanted: list[int], allow_zero: bool) -> tuple[int, ...]:
    """`wanted` with its 0 and −1 replaced for a tensor of `shape`. Raises Refused."""
    sizes = list(wanted)
    for i, size in enumerate(sizes):
        if size == 0 and not allow_zero:
            if i >= len(shape):
                raise Refused(f"its shape {wanted} copies axis {i} of a tensor of shape {shape}")
            sizes[i] = shape[i]
    if min(sizes, default=0) < -1 or sizes.count(-1) > 1:
        raise Refused(f"its shape {wanted} is not a shape")
    if -1 in sizes:
        known = -math.prod(sizes)
        if known == 0 or math.prod(shape) % known:
            raise Refused(f"a tensor of shape {shape} does not fit shape {wanted}")
        sizes[sizes.index(-1)] = math.prod(shape) // known
    return tuple(sizes)
