"""LpPool and GlobalLpPool: the root of a sum of powers; the sums over windows are a convolution with ones."""

from __future__ import annotations

import numpy as np

from engine.graph.graph import Node
from engine.ops._base import Refused
from engine.ops._nodes import Nodes, written

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
