"""Expand: x broadcast against another shape, by an operation with a number that changes nothing."""

from __future__ import annotations

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, Scope, operator, view
from engine.ops.binary import binary_params, broadcast


@operator("Expand")
def lower(node: Node, scope: Scope) -> Lowered:
    """x → y of the broadcast shape: x · 1, or x or false."""
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    wanted = scope.integers(node, 1, "shape")
    if wanted is None or min(wanted, default=1) < 1:
        raise Refused(f"its shape {wanted} is not a shape")
    out = broadcast(shape, tuple(wanted))
    if out == shape:
        return view(node, scope, shape)
    kind, value = ("or", False) if dtype == "bool" else ("mul", 1)
    name = f"{output}:number"
    made = Kernel(binary_params(kind, shape, (), out, dtype), (x, name), output)
    specs = {output: TensorSpec(out, dtype), name: TensorSpec((), dtype)}
    return Lowered((made,), specs, {name: np.array(value, dtype)})
