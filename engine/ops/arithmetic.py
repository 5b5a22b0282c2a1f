"""What is one operation, or two, of others: Neg, Reciprocal, Expand, Swish, and Clip where it is a Relu."""

from __future__ import annotations

import math

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, Scope, kernel, optional_input, view
from engine.ops.binary import binary_params, broadcast
from kernels.ops.unary import Unary

OP_TYPES = ("Clip", "Expand", "Neg", "Reciprocal", "Swish")


def lower(node: Node, scope: Scope) -> Lowered:
    """x → y of the same shape; of Expand of the broadcast one."""
    if node.op_type == "Clip":
        return _clip(node, scope)
    if node.op_type == "Swish":
        return _swish(node, scope)
    x = node.inputs[0]
    shape = out = scope.shape(x)
    if node.op_type == "Expand":
        wanted = scope.integers(node, 1, "shape")
        if wanted is None or min(wanted, default=1) < 1:
            raise Refused(f"its shape {wanted} is not a shape")
        out = broadcast(shape, tuple(wanted))
        if out == shape:
            return view(node, scope, shape)
    # x · −1 and x · 1 are exact, and 1 / x is rounded once.
    value, kind = {"Neg": (-1, "mul"), "Reciprocal": (1, "div"), "Expand": (1, "mul")}[node.op_type]
    one_first = node.op_type == "Reciprocal"
    return _with_number(node, scope, value, kind, out, one_first)


def _with_number(
    node: Node, scope: Scope, value: float, kind: str, out: tuple[int, ...], number_first: bool
) -> Lowered:
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    if np.dtype(dtype).kind in "bu" or (np.dtype(dtype).kind == "i" and kind == "div"):
        raise Refused(f"it computes in {dtype}, and floating point is supported")
    name = f"{output}:number"
    if number_first:
        params, inputs = binary_params(kind, (), shape, out, dtype), (name, x)
    else:
        params, inputs = binary_params(kind, shape, (), out, dtype), (x, name)
    made = Kernel(params, inputs, output)
    specs = {output: TensorSpec(out, dtype), name: TensorSpec((), dtype)}
    return Lowered((made,), specs, {name: np.array(value, dtype)})


def _swish(node: Node, scope: Scope) -> Lowered:
    """x · sigmoid(alpha · x)."""
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    alpha = float(node.attributes.get("alpha", 1.0))
    spec, gate, scaled, factor = TensorSpec(shape, dtype), f"{output}:gate", f"{output}:scaled", f"{output}:a"
    items: list[Kernel] = []
    specs, constants = {output: spec, gate: spec}, {}
    if alpha != 1.0:
        items.append(Kernel(binary_params("mul", shape, (), shape, dtype), (x, factor), scaled))
        specs |= {scaled: spec, factor: TensorSpec((), dtype)}
        constants[factor] = np.array(alpha, dtype)
    source = scaled if items else x
    items.append(Kernel(Unary(kind="sigmoid", size=math.prod(shape), dtype=dtype), (source,), gate))
    items.append(Kernel(binary_params("mul", shape, shape, shape, dtype), (x, gate), output))
    return Lowered(tuple(items), specs, constants)


def _clip(node: Node, scope: Scope) -> Lowered:
    """Bounds are attributes before opset 11, constant inputs from then on; without any it is x itself."""
    x = node.inputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    bounds = []
    for index, name in ((1, "min"), (2, "max")):
        value = node.attributes.get(name)
        if scope.opset >= 11 and optional_input(node, index):
            given = scope.constant(node, index, name)
            value = None if given is None or given.size == 0 else given.reshape(-1)[0]
        # A bound at the end of what the type holds bounds nothing.
        numbers = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
        end = numbers.min if name == "min" else numbers.max
        beyond = value is not None and (value <= end if name == "min" else value >= end)
        bounds.append(None if value is None or beyond else float(value))
    if bounds == [None, None]:
        return view(node, scope, shape)
    if bounds != [0.0, None]:
        raise Refused(
            f"its bounds are {bounds[0]} and {bounds[1]}, and only 0 and none (a Relu) are supported"
        )
    if np.dtype(dtype).kind != "f":
        raise Refused(f"it computes in {dtype}, and a Relu in floating point is supported")
    return kernel(node, Unary(kind="relu", size=math.prod(shape), dtype=dtype), (x,), shape, dtype)
