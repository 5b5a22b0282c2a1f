"""GlobalAveragePool and GlobalMaxPool: the window is the whole image."""

from __future__ import annotations

import math

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, operator
from kernels.ops.pool import Pool


@operator("GlobalAveragePool", "GlobalMaxPool")
def lower(node: Node, scope: Scope) -> Lowered:
    """x (n, c, spatial…) → y (n, c, 1…); other than two spatial axes are taken as one row."""
    x, shape, dtype = scope.first(node)
    if len(shape) < 3:
        raise Refused(f"its input {shape} has no spatial axes")
    pool = global_pool("max" if node.op_type == "GlobalMaxPool" else "average", shape, dtype)
    return kernel(node, pool, (x,), shape[:2] + (1,) * (len(shape) - 2), dtype)


def global_pool(kind: str, shape: tuple[int, ...], dtype: str) -> Pool:
    """A pool whose window is all of (n, c, spatial…)."""
    h, w = shape[2:] if len(shape) == 4 else (1, math.prod(shape[2:]))
    return Pool(
        kind=kind, n=shape[0], c=shape[1], h=h, w=w, kh=h, kw=w, out_h=1, out_w=1, dtype=dtype
    )  # fmt: skip
