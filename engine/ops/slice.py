"""Slice and Split: parts of a tensor, cut out by pads that are negative, or gathered in steps."""

from __future__ import annotations

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Lowered, Refused, Scope, normal_axis, operator, optional_input
from engine.ops._parts import along, cut


@operator("Slice")
def _slice(node: Node, scope: Scope) -> Lowered:
    """x → y."""
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    if scope.opset < 10:
        starts, ends = list(node.attributes["starts"]), list(node.attributes["ends"])
        axes = list(node.attributes.get("axes", range(len(starts))))
        steps = [1] * len(starts)
    else:
        starts, ends = scope.integers(node, 1, "starts") or [], scope.integers(node, 2, "ends") or []
        axes = scope.integers(node, 3, "axes") or list(range(len(starts)))
        steps = scope.integers(node, 4, "steps") or [1] * len(starts)
    axes = [normal_axis(int(axis), len(shape)) for axis in axes]
    if not len(starts) == len(ends) == len(axes) == len(steps) == len(set(axes)):
        raise Refused(f"its starts {starts}, ends {ends}, axes {axes} and steps {steps} do not fit together")
    begin, size, steps_along = [0] * len(shape), list(shape), {}
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        indices = range(shape[axis])[slice(start, end, step)] if step else range(0)
        if len(indices) > 1 and step != 1:
            steps_along[axis] = indices
        begin[axis], size[axis] = (indices[0] if indices else 0), len(indices)
    out = tuple(size)
    if 0 in out:
        raise Refused(f"it leaves nothing of a tensor of shape {shape}")
    if steps_along:
        # Axes whose steps are 1 are cut on the way.
        every = {a: range(begin[a], begin[a] + size[a]) for a in range(len(shape)) if size[a] < shape[a]}
        places = {axis: np.array(indices) for axis, indices in (every | steps_along).items()}
        return along(x, shape, places, output, dtype)
    return Lowered((cut(x, shape, begin, size, output, dtype),), {output: TensorSpec(out, dtype)})


@operator("Split")
def _split(node: Node, scope: Scope) -> Lowered:
    """x → the parts of x along an axis, in order."""
    x, shape, dtype = scope.first(node)
    axis = normal_axis(int(node.attributes.get("axis", 0)), len(shape))
    sizes = node.attributes.get("split")
    if optional_input(node, 1):
        sizes = scope.integers(node, 1, "split")
    count = len(node.outputs)
    if sizes is None:
        # All alike; from opset 18 on the last is what is left.
        each = -(-shape[axis] // count)
        if shape[axis] % count and scope.opset < 18:
            raise Refused(f"{shape[axis]} along axis {axis} do not divide into {count} equal parts")
        sizes = [max(0, min(each, shape[axis] - i * each)) for i in range(count)]
    parts = [int(part) for part in sizes]
    if len(parts) != count or sum(parts) != shape[axis] or min(parts) < 0:
        raise Refused(f"its parts {parts} do not make up the {shape[axis]} along axis {axis}")
    items, specs, constants = [], {}, {}
    for output, first, part in zip(node.outputs, np.cumsum([0, *parts[:-1]]), parts, strict=True):
        if output:
            begin, size = [0] * len(shape), list(shape)
            begin[axis], size[axis] = int(first), part
            specs[output] = TensorSpec(tuple(size), dtype)
            if part:
                items.append(cut(x, shape, begin, size, output, dtype))
            else:
                constants[output] = np.zeros(size, dtype)
    return Lowered(tuple(items), specs, constants)
