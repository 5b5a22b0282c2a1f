"""Clip: a Relu from 0 on, a function of two bounds where they are known, else a maximum and a minimum."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, operator, optional_input, view
from engine.ops._nodes import Nodes
from engine.ops.unary import unary
from kernels.ops import FLOATS


@dataclass
class _Bound:
    """name: of the tensor that holds it, "" where that is to be made of `value`."""

    name: str = ""
    value: np.generic | None = None


@operator("Clip")
def lower(node: Node, scope: Scope) -> Lowered:
    """x → y of the same shape. Bounds are attributes before opset 11, inputs from then on; without any it is
    x itself."""
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    if dtype not in FLOATS and np.dtype(dtype).kind not in "iu":
        raise Refused(f"it computes in {dtype}, and numbers are supported")
    low, high = (_bound(node, scope, index, name, dtype) for index, name in ((1, "min"), (2, "max")))
    if low is None and high is None:
        return view(node, scope, shape)
    signed = dtype in FLOATS or np.dtype(dtype).kind == "i"
    if low is not None and high is None and low.value == 0 and signed:
        return kernel(node, unary("relu", shape, dtype), (x,), shape, dtype)
    known = [float(bound.value) for bound in (low, high) if bound is not None and bound.value is not None]
    if len(known) == 2 and dtype in ("float32", "float16"):
        return kernel(node, unary("clip", shape, dtype, *known), (x,), shape, dtype)
    nodes = Nodes(node, scope)
    for kind, bound in (("Max", low), ("Min", high)):
        if bound is not None:
            held = nodes.constant(bound.value, dtype) if bound.value is not None else bound.name
            if nodes.shape(held):
                held = nodes.shaped(held, ())
            x = nodes(kind, x, held, output=output if kind == "Min" or high is None else "")
    return nodes.lowered()


def _bound(node: Node, scope: Scope, index: int, name: str, dtype: str) -> _Bound | None:
    """None where nothing is bounded. Raises Refused for one that is no single number of the type."""
    value = node.attributes.get(name)
    if scope.opset >= 11:
        given = optional_input(node, index)
        if not given:
            return None
        spec = scope.spec(given)
        if spec.dtype != dtype or any(size != 1 for size in spec.shape):
            raise Refused(
                f"its {name} is {spec.dtype} of shape {spec.shape}, and one number of {dtype} is wanted"
            )
        if given not in scope.constants:
            return _Bound(given)
        value = scope.constants[given].reshape(-1)[0]
    if value is None:
        return None
    # A bound at the end of what the type holds bounds nothing.
    numbers = ml_dtypes.finfo(dtype) if dtype in FLOATS else np.iinfo(dtype)
    if value <= numbers.min if name == "min" else value >= numbers.max:
        return None
    return _Bound(value=np.dtype(dtype).type(value))
