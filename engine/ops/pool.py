"""MaxPool and AveragePool over one or two spatial axes."""

from __future__ import annotations

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel
from engine.ops._window import resolve
from kernels.ops.pool import Pool

OP_TYPES = ("AveragePool", "MaxPool")


def lower(node: Node, scope: Scope) -> Lowered:
    """x (n, c, [h,] w) → y (n, c, [out_h,] out_w)."""
    x = node.inputs[0]
    shape = scope.shape(x)
    if len(shape) < 3:
        raise Refused(f"its input {shape} has no spatial axes")
    if node.attributes.get("storage_order", 0):
        raise Refused("storage_order 1 (column-major indices) is not supported, only 0")
    scope.refuse_outputs(node, "the indices of the maxima")
    height, width = resolve(node, shape[2:], tuple(node.attributes["kernel_shape"]))
    for axis in (height, width):
        # A window that lies in padding alone has no maximum and no mean.
        if max(axis.pad_begin, axis.pad_end) > (axis.kernel - 1) * axis.dilation:
            raise Refused(f"its pads of {axis.pad_begin} and {axis.pad_end} reach beyond its kernel")
    dtype = scope.spec(x).dtype
    pool = Pool(
        kind="max" if node.op_type == "MaxPool" else "average",
        n=shape[0],
        c=shape[1],
        h=height.size,
        w=width.size,
        kh=height.kernel,
        kw=width.kernel,
        out_h=height.out,
        out_w=width.out,
        stride_h=height.stride,
        stride_w=width.stride,
        pad_top=height.pad_begin,
        pad_left=width.pad_begin,
        pad_bottom=height.pad_end,
        pad_right=width.pad_end,
        dilation_h=height.dilation,
        dilation_w=width.dilation,
        count_include_pad=bool(node.attributes.get("count_include_pad", 0)),
        dtype=dtype,
    )
    out = (height.out, width.out)[4 - len(shape) :]
    return kernel(node, pool, (x,), (*shape[:2], *out), dtype)
