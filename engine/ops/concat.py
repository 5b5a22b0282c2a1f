"""Concat along any axis: rows side by side, so many tensors at a time as its kernels take."""

from __future__ import annotations

import math

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, Scope, View, normal_axis, operator
from engine.ops.binary import one_type
from kernels.ops.concat import MOST_PARTS, Concat


@operator("Concat")
def lower(node: Node, scope: Scope) -> Lowered:
    """x0, x1, … of equal sizes but along `axis` → y."""
    output, dtype = node.outputs[0], one_type(node.inputs, scope)
    shapes = [scope.shape(name) for name in node.inputs]
    axis = normal_axis(int(node.attributes["axis"]), len(shapes[0]))
    others = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    if len(others) > 1 or len({len(shape) for shape in shapes}) > 1:
        raise Refused(f"parts of shapes {', '.join(map(str, shapes))} do not fit together along axis {axis}")
    before, behind = shapes[0][:axis], shapes[0][axis + 1 :]
    total = sum(shape[axis] for shape in shapes)
    specs = {output: TensorSpec((*before, total, *behind), dtype)}
    parts = [(name, shape[axis]) for name, shape in zip(node.inputs, shapes, strict=True) if shape[axis]]
    if len(parts) == 1:
        return Lowered((View(parts[0][0], output),), specs)
    items: list[Kernel] = []
    while len(parts) > 1:
        names, sizes = zip(*parts[:MOST_PARTS], strict=True)
        parts = parts[MOST_PARTS:]
        target = f"{output}:{len(items)}" if parts else output
        widths = tuple(size * math.prod(behind) for size in sizes)
        items.append(Kernel(Concat(outer=math.prod(before), widths=widths, dtype=dtype), names, target))
        specs[target] = TensorSpec((*before, sum(sizes), *behind), dtype)
        parts.insert(0, (target, sum(sizes)))
    return Lowered(tuple(items), specs)
