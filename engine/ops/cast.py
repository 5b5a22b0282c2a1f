"""Cast and CastLike: another element type; to its own type it is a view."""

from __future__ import annotations

import math

import onnx

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, operator, view
from kernels.ops import EXPONENTS, FLOATS8, ITEMSIZE
from kernels.ops.cast import TOWARDS, Cast


@operator("Cast", "CastLike")
def lower(node: Node, scope: Scope) -> Lowered:
    """x → y of the same shape."""
    x, shape, dtype = scope.first(node)
    if node.op_type == "CastLike":
        to = scope.spec(node.inputs[1]).dtype
    else:
        to = onnx.helper.tensor_dtype_to_np_dtype(int(node.attributes["to"])).name
    if to == dtype:
        return view(node, scope, shape)
    if to not in ITEMSIZE or dtype not in ITEMSIZE:
        raise Refused(f"{dtype} to {to} is not supported; the element types are {', '.join(ITEMSIZE)}")
    saturate = to in FLOATS8 and bool(node.attributes.get("saturate", 1))
    towards = TOWARDS[0]
    if to == EXPONENTS:
        saturate, towards = bool(node.attributes.get("saturate", 1)), node.attributes.get("round_mode", "up")
        if towards not in TOWARDS:
            raise Refused(f"round_mode {towards!r} is unknown; there are {', '.join(TOWARDS)}")
    params = Cast(math.prod(shape), dtype, to, saturate, towards)
    return kernel(node, params, (x,), shape, to)
