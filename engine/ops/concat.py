"""Concat along any axis: each part padded with zeros to the whole's size, and all of them added up.

That gives exactly the parts, for x + 0 is x; it writes the whole once for each part, twice but for the first.
"""

from __future__ import annotations

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, Scope, normal_axis, view
from engine.ops.binary import binary_params
from engine.ops.pad import merge_axes
from kernels.ops.pad import Pad

OP_TYPES = ("Concat",)


def lower(node: Node, scope: Scope) -> Lowered:
    """x0, x1, … of equal sizes but along `axis` → y."""
    output = node.outputs[0]
    shapes = [scope.shape(name) for name in node.inputs]
    dtype = scope.spec(node.inputs[0]).dtype
    axis = normal_axis(int(node.attributes["axis"]), len(shapes[0]))
    others = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    if len(others) > 1 or len({len(shape) for shape in shapes}) > 1:
        raise Refused(f"parts of shapes {', '.join(map(str, shapes))} do not fit together along axis {axis}")
    if len(shapes) == 1:
        return view(node, scope, shapes[0])
    total = sum(shape[axis] for shape in shapes)
    out = (*shapes[0][:axis], total, *shapes[0][axis + 1 :])
    spec = TensorSpec(out, dtype)
    items: list[Kernel] = []
    specs = {output: spec}
    before, sum_ = 0, ""
    for index, (name, shape) in enumerate(zip(node.inputs, shapes, strict=True)):
        begin, end = [0] * len(shape), [0] * len(shape)
        begin[axis], end[axis] = before, total - before - shape[axis]
        before += shape[axis]
        padded = f"{output}:part{index}"
        sizes, begins, ends = merge_axes(shape, begin, end)
        items.append(Kernel(Pad(shape=sizes, begin=begins, end=ends, dtype=dtype), (name,), padded))
        specs[padded] = spec
        if sum_:
            made = output if index == len(shapes) - 1 else f"{output}:sum{index}"
            items.append(Kernel(binary_params("add", out, out, out, dtype), (sum_, padded), made))
            specs[made] = spec
            padded = made
        sum_ = padded
    return Lowered(tuple(items), specs)
