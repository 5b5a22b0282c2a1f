"""DynamicQuantizeLinear: to uint8 by a scale that the tensor's own range gives, as several steps.

"y_scale = (maximum(0, max(x)) − minimum(0, min(x))) / 255, intermediate_zero_point = 0 − min(x) / y_scale,
y_zero_point = cast(round(saturate(intermediate_zero_point))), y = saturate(round(x / y_scale) +
y_zero_point)"; where x is 0 everywhere its range is taken for 1, as onnx.reference has it, and y is 0.
"""

from __future__ import annotations

import math

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, Scope
from engine.ops.binary import binary_params
from kernels.ops import Params
from kernels.ops.cast import Cast
from kernels.ops.compare import Compare
from kernels.ops.quantize import Quantize
from kernels.ops.reduce import Reduce
from kernels.ops.unary import Unary
from kernels.ops.where import Where

OP_TYPES = ("DynamicQuantizeLinear",)


def lower(node: Node, scope: Scope) -> Lowered:
    """x float32 → y uint8, its scale (), float32, and its zero point (), uint8; those that are read."""
    x = node.inputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    if dtype != "float32":
        raise Refused(f"it quantizes {dtype}, and float32 is supported")
    y, scale_out, zero_out = (*node.outputs, "", "")[:3]
    stem = next(name for name in node.outputs if name)
    held = {"none": np.float32(0), "steps": np.float32(255), "unit": np.float32(1)}
    constants = {f"{stem}:{name}": value.reshape(1) for name, value in held.items()}
    none, steps, unit = constants
    specs = {name: TensorSpec((1,), "float32") for name in constants}
    items: list[Kernel] = []

    def step(name: str, params: Params, *inputs: str) -> str:
        specs[name] = TensorSpec((1,), params.out_dtype)
        items.append(Kernel(params, inputs, name))
        return name

    def both(name: str, kind: str, a: str, b: str) -> str:
        return step(f"{stem}:{name}", binary_params(kind, (1,), (1,), (1,), "float32"), a, b)

    size = math.prod(shape)
    most = step(f"{stem}:most", Reduce("max", 1, size, 1), x)
    least = step(f"{stem}:least", Reduce("min", 1, size, 1), x)
    most, least = both("high", "max", most, none), both("low", "min", least, none)
    equal = step(f"{stem}:equal", Compare("equal", (1,), (1,), (1,)), most, least)
    width = both("width", "sub", most, least)
    width = step(f"{stem}:range", Where((1,), (1,), (1,), (1,)), equal, unit, width)
    scale = step(
        scale_out or f"{stem}:scale", binary_params("div", (1,), (1,), (1,), "float32"), width, steps
    )
    quotient = both("quotient", "div", least, scale)
    begin = both("begin", "sub", none, quotient)
    begin = step(f"{stem}:saturated", Unary("clip", 1, alpha=0.0, beta=255.0), begin)
    zero = step(f"{stem}:zero", Unary("round", 1), begin)
    if zero_out:
        items.append(Kernel(Cast(1, "float32", "uint8"), (zero,), zero_out))
        specs[zero_out] = TensorSpec((), "uint8")
    if scale_out:
        specs[scale_out] = TensorSpec((), "float32")
    if y:  # last: it is what the node is looked at by
        items.append(Kernel(Quantize(1, 1, size, "uint8", to="uint8"), (x, scale, zero), y))
        specs[y] = TensorSpec(shape, "uint8")
    return Lowered(tuple(items), specs, constants)
