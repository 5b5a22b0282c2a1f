"""LRN: local response normalisation across channels."""

from __future__ import annotations

import math

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, operator
from kernels.ops.lrn import Lrn


@operator("LRN")
def lower(node: Node, scope: Scope) -> Lowered:
    """x (n, c, spatial…) → y of the same shape."""
    x, shape, dtype = scope.first(node)
    size = int(node.attributes["size"])
    if len(shape) < 2 or size < 1:
        raise Refused(
            f"an input of shape {shape} and a size of {size} do not make a normalisation over channels"
        )
    lrn = Lrn(
        n=shape[0],
        c=shape[1],
        inner=math.prod(shape[2:]),
        size=size,
        alpha=float(node.attributes.get("alpha", 1e-4)),
        beta=float(node.attributes.get("beta", 0.75)),
        bias=float(node.attributes.get("bias", 1.0)),
        dtype=dtype,
    )
    return kernel(node, lrn, (x,), shape, dtype)
