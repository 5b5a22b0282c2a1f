"""TopK: the places of the largest or smallest along an axis, and what stands there."""

from __future__ import annotations

import math

import numpy as np

from engine.graph.graph import Node
from engine.ops._base import Refused, normal_axis, optional_input
from engine.ops._nodes import Nodes, written
from kernels.ops.top_k import TopK


@written("TopK")
def _top_k(node: Node, nodes: Nodes) -> None:
    """x, k → values, places; k is an attribute before opset 10, a constant input from then on. They come in
    order, whether that is asked for or not."""
    x, shape, dtype = nodes.around.first(node)
    axis = normal_axis(int(node.attributes.get("axis", -1)), len(shape))
    k = node.attributes.get("k")
    if optional_input(node, 1):
        k_constant = nodes.around.constant(node, 1, "k")
        k = None if k_constant is None or k_constant.size != 1 else k_constant.reshape(-1)[0]
    if k is None or not 1 <= int(k) <= shape[axis]:
        raise Refused(f"its k is {k}, and a number from 1 to the {shape[axis]} along its axis is wanted")
    params = TopK(
        outer=math.prod(shape[:axis]),
        axis=shape[axis],
        inner=math.prod(shape[axis + 1 :]),
        k=int(k),
        largest=bool(node.attributes.get("largest", 1)),
        dtype=dtype,
    )
    out = (*shape[:axis], int(k), *shape[axis + 1 :])
    values, places = (*node.outputs, "")[:2]
    place = nodes.kernel(params, (x,), out, places)
    if values:
        # The place in the tensor as one row: (outer, place, inner).
        outer, inner = (np.arange(size) for size in (params.outer, params.inner))
        base = nodes.constant(outer[:, None, None] * (params.axis * params.inner) + inner, np.int64)
        flat = nodes.shaped(place, params.output_shape)
        if params.inner > 1:
            flat = nodes("Mul", flat, nodes.constant(params.inner, np.int64))
        flat = nodes.shaped(nodes("Add", flat, base), (params.outputs,))
        top_values = nodes("Gather", nodes.shaped(x, (math.prod(shape),)), flat, axis=0)
        nodes.shaped(top_values, out, output=values)
