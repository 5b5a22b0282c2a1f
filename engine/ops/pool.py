"""MaxPool and AveragePool over any number of spatial axes: the last two as images are pooled, those before
them one by one; the global ones, whose window is the whole image; and LpPool.

The maximum over a box is one of maxima over its sides, and so is the mean, for what counts of a box are its
sides' counts multiplied.
"""

from __future__ import annotations

import math

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, Scope, kernel, operator
from engine.ops._nodes import Nodes, written
from engine.ops._window import IDLE, WindowAxis, resolve
from kernels.ops.pool import Pool
from kernels.ops.pool_index import PoolIndex


@operator("AveragePool", "MaxPool")
def _pooled(node: Node, scope: Scope) -> Lowered:
    """x (n, c, spatial…) → y (n, c, out…), and where in x its maxima lie."""
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    if len(shape) < 3:
        raise Refused(f"its input {shape} has no spatial axes")
    axes = resolve(node, shape[2:], tuple(node.attributes["kernel_shape"]))
    for axis in axes:
        # A window that lies in padding alone has no maximum and no mean.
        if max(axis.pad_begin, axis.pad_end) > (axis.kernel - 1) * axis.dilation:
            raise Refused(f"its pads of {axis.pad_begin} and {axis.pad_end} reach beyond its kernel")
    sizes = list(shape)
    items: list[Kernel] = []
    specs: dict[str, TensorSpec] = {}

    def pooled(height: WindowAxis, width: WindowAxis, n: int, c: int) -> None:
        into = output if len(items) == max(1, len(axes) - 1) - 1 else f"{output}:axes{len(items)}"
        specs[into] = TensorSpec(tuple(sizes), dtype)
        pool = _pool(node, height, width, n, c, dtype)
        items.append(Kernel(pool, (items[-1].output if items else x,), into))

    height, width = (IDLE, *axes)[-2:]
    sizes[-min(2, len(axes)) :] = [axis.out for axis in axes[-2:]]
    pooled(height, width, shape[0], math.prod(sizes[1 : -min(2, len(axes))]))
    for i in reversed(range(len(axes) - 2)):
        inner = math.prod(sizes[i + 3 :])  # which has a window of one element
        beside = WindowAxis(inner, kernel=1, stride=1, dilation=1, pad_begin=0, pad_end=0, out=inner)
        sizes[i + 2] = axes[i].out
        pooled(axes[i], beside, shape[0], math.prod(sizes[1 : i + 2]))
    places = node.outputs[1] if len(node.outputs) > 1 else ""
    if places and places in scope.consumed:
        if len(axes) > 2:
            raise Refused(f"its output {places!r} (the indices of the maxima) is supported of up to two axes")
        pool = _pool(node, height, width, shape[0], shape[1], dtype)
        index = PoolIndex(pool, bool(node.attributes.get("storage_order", 0)) and len(axes) == 2)
        items.append(Kernel(index, (x,), places))
        specs[places] = TensorSpec(tuple(sizes), "int64")
    return Lowered(tuple(items), specs)


def _pool(node: Node, height: WindowAxis, width: WindowAxis, n: int, c: int, dtype: str) -> Pool:
    return Pool(
        kind="max" if node.op_type == "MaxPool" else "average",
        n=n,
        c=c,
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


@operator("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(node: Node, scope: Scope) -> Lowered:
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


# -------------------------------------------------------------------------------------------------- lp pool

# LpPool and GlobalLpPool: the root of a sum of powers; the sums over windows are a convolution with ones.


_WINDOW = ("auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides")


@written("GlobalLpPool", "LpPool")
def _lp_pool(node: Node, nodes: Nodes) -> None:
    """x (n, c, …) → y (n, c, …): (Σ |x|ᵖ)^(1/p) over a window, or over the whole image."""
    x, shape, dtype = nodes.around.first(node)
    output = node.outputs[0]
    p = float(node.attributes.get("p", 2))
    if np.dtype(dtype).kind != "f" or len(shape) < 3 or not p > 0:
        raise Refused(f"an input of {dtype} of shape {shape} and p = {p:g} do not go together")
    powers = nodes("Abs", x)
    if p != 1:
        powers = nodes("Mul", x, x) if p == 2 else nodes("Pow", powers, nodes.constant(p, dtype))
    last = output if p == 1 else ""
    if node.op_type == "LpPool":
        kernel = tuple(node.attributes["kernel_shape"])
        ones = nodes.constant(np.ones((shape[1], 1, *kernel)), dtype)
        window = {name: node.attributes[name] for name in _WINDOW if name in node.attributes}
        sums = nodes("Conv", powers, ones, output=last, group=shape[1], **window)
    else:
        axes = nodes.constant(np.arange(2, len(shape)))
        sums = nodes("ReduceSum", powers, axes, output=last, keepdims=1)
    if p == 2:
        nodes("Sqrt", sums, output=output)
    elif p != 1:
        nodes("Pow", sums, nodes.constant(1 / p, dtype), output=output)
