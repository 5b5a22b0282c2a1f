"""QuantizeLinear and DequantizeLinear, by tensor or by axis, to eight bits.

Weights are dequantized at plan time, as anything that is constant (engine.passes.fold). A product between
DequantizeLinear and QuantizeLinear becomes one step of whole numbers (engine.passes.quantized); elsewhere a
QuantizeLinear and the DequantizeLinear behind it become one step (engine.passes.fuse).
"""

from __future__ import annotations

import math

import numpy as np
import onnx

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, Scope, View, normal_axis, optional_input
from kernels.ops.cast import Cast
from kernels.ops.quantize import THROUGH, Quantize

OP_TYPES = ("DequantizeLinear", "QuantizeLinear")


def lower(node: Node, scope: Scope) -> Lowered:
    """x, scale, optional zero point → y of the same shape."""
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    scale, zero = node.inputs[1], optional_input(node, 2)
    of_scale, of_zero = scope.spec(scale), scope.spec(zero) if zero else None
    if of_scale.dtype != "float32":
        raise Refused(f"its scale is {of_scale.dtype}, and float32 is supported")
    if node.attributes.get("block_size", 0):
        raise Refused(
            "scales of blocks (block_size) are supported where its input is constant, and here it is not"
        )
    if node.op_type == "QuantizeLinear":
        to = through = _type(node, of_zero)
        if dtype != "float32":
            raise Refused(f"it quantizes {dtype}, and float32 is supported")
    else:
        to, through = "float32", dtype
    if through not in THROUGH or to == "int32":
        raise Refused(f"it goes through {through}, and uint8 and int8 are supported")
    if of_zero is not None and (of_zero.dtype != through or of_zero.shape != of_scale.shape):
        raise Refused(
            f"its zero point is {of_zero.dtype} of shape {of_zero.shape}, and does not fit its scale"
        )
    params = Quantize(*_sizes(node, of_scale.shape, shape), through=through, to=to, dtype=dtype)
    held = (f"{output}:scale", f"{output}:zero")
    specs = {name: TensorSpec((params.channels,), "float32") for name in held}
    specs[output] = TensorSpec(shape, to)
    constants: dict[str, np.ndarray] = {}
    items: list[Kernel | View] = []
    if scale in scope.constants:
        constants[held[0]] = scope.constants[scale].reshape(-1)
    else:
        items.append(View(scale, held[0]))
    if not zero or zero in scope.constants:
        values = scope.constants[zero] if zero else np.zeros(params.channels)
        constants[held[1]] = values.reshape(-1).astype(np.float32)
    else:
        items.append(Kernel(Cast(params.channels, through, "float32"), (zero,), held[1]))
    return Lowered((*items, Kernel(params, (x, *held), output)), specs, constants)


def _type(node: Node, zero: TensorSpec | None) -> str:
    """What it quantizes to: the zero point's type, or the one that is named, or uint8."""
    if zero is not None:
        return zero.dtype
    named = int(node.attributes.get("output_dtype", 0))
    return onnx.helper.tensor_dtype_to_np_dtype(named).name if named else "uint8"


def _sizes(node: Node, scale: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, int, int]:
    """What lies before the axis that has a scale each, the scales, and what lies behind it."""
    if math.prod(scale) == 1:
        return 1, 1, math.prod(shape)
    axis = normal_axis(int(node.attributes.get("axis", 1)), len(shape))
    if scale != (shape[axis],):
        raise Refused(f"its scale of shape {scale} does not fit axis {axis} of an input of shape {shape}")
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
