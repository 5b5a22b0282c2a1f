"""Sum and Mean of any number of tensors with NumPy broadcasting: additions one behind the other."""

from __future__ import annotations

import functools

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Scope, view
from engine.ops.binary import binary_params, broadcast
from kernels.ops.binary import Binary

OP_TYPES = ("Mean", "Sum")


def lower(node: Node, scope: Scope) -> Lowered:
    """x0, x1, … → y of their broadcast shape."""
    output, count = node.outputs[0], len(node.inputs)
    shapes = [scope.shape(name) for name in node.inputs]
    dtype = scope.spec(node.inputs[0]).dtype
    if count == 1:
        return view(node, scope, shapes[0])
    functools.reduce(broadcast, shapes)
    items: list[Kernel] = []
    specs: dict[str, TensorSpec] = {}
    constants: dict[str, np.ndarray] = {}

    def add(made: str, params: Binary, inputs: tuple[str, str], shape: tuple[int, ...]) -> None:
        items.append(Kernel(params, inputs, made))
        specs[made] = TensorSpec(shape, dtype)

    so_far, shape = node.inputs[0], shapes[0]
    for index, (name, other) in enumerate(zip(node.inputs[1:], shapes[1:], strict=True), start=1):
        whole = broadcast(shape, other)
        made = output if index == count - 1 and node.op_type == "Sum" else f"{output}:sum{index}"
        add(made, binary_params("add", shape, other, whole, dtype), (so_far, name), whole)
        so_far, shape = made, whole
    if node.op_type == "Mean":
        divisor = f"{output}:count"
        constants[divisor] = np.array(count, dtype)
        specs[divisor] = TensorSpec((), dtype)
        add(output, binary_params("div", shape, (), shape, dtype), (so_far, divisor), shape)
    return Lowered(tuple(items), specs, constants)
