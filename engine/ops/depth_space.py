"""DepthToSpace and SpaceToDepth: one transposition of the same bytes under six axes."""

from __future__ import annotations

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, operator, view
from engine.ops.transpose import merge_axes
from kernels.ops.transpose import Transpose


@operator("DepthToSpace", "SpaceToDepth")
def lower(node: Node, scope: Scope) -> Lowered:
    """x (n, c, h, w), b = blocksize → y (n, c / b², h · b, w · b), or the other way round."""
    x, b = node.inputs[0], int(node.attributes["blocksize"])
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    if len(shape) != 4 or b < 1:
        raise Refused(f"an input of shape {shape} and a blocksize of {b} do not go together")
    n, c, h, w = shape
    mode = node.attributes.get("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise Refused(f"its mode is {mode!r}, and DCR and CRD are supported")
    if node.op_type == "SpaceToDepth":
        if h % b or w % b:
            raise Refused(f"an image of {h} × {w} does not divide into blocks of {b}")
        six = (n, c, h // b, b, w // b, b)
        perm = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
        out = (n, c * b * b, h // b, w // b)
    else:
        if c % (b * b):
            raise Refused(f"{c} channels do not divide into blocks of {b} × {b}")
        if mode == "DCR":
            six, perm = (n, b, b, c // (b * b), h, w), (0, 3, 4, 1, 5, 2)
        else:
            six, perm = (n, c // (b * b), b, b, h, w), (0, 1, 4, 2, 5, 3)
        out = (n, c // (b * b), h * b, w * b)
    sizes, order = merge_axes(six, perm)
    if order == tuple(range(len(order))):
        return view(node, scope, out)
    return kernel(node, Transpose(shape=sizes, perm=order, dtype=dtype), (x,), out, dtype)
