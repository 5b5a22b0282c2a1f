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
from engine.ops._base import Kernel, Lowered, Refused, Scope, normal_axis
from kernels.ops.quantize import THROUGH, Quantize

OP_TYPES = ("DequantizeLinear", "QuantizeLinear")

def lower(node: Node, scope: Scope) -> Lowered:
    """x, scale, optional zero point → y of the same shape."""
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    scale, zero = scope.constant(node, 1, "scale"), scope.constant(node, 2, "zero point")
    if scale is None or scale.dtype != np.float32:
        raise Refused("its scale is not float32, and no other is supported")
    if node.attributes.get("block_size", 0):
        raise Refused(
            "scales of blocks (block_size) are supported where its input is constant, and here it is not"
        )
    if node.op_type == "QuantizeLinear":
        to = through = _type(node, zero)
        if dtype != "float32":
            raise Refused(f"it quantizes {dtype}, and float32 is supported")
    else:
        to, through = "float32", dtype
    if through not in THROUGH or to == "int32":
        raise Refused(f"it goes through {through}, and uint8 and int8 are supported")
    if zero is not None and (zero.dtype.name != through or zero.shape != scale.shape):
        raise Refused(
            f"its zero point is {zero.dtype.name} of shape {zero.shape}, and does not fit its scale"
        )
    sizes = _sizes(node, scale, shape)
    params = Quantize(*sizes, through=through, to=to, dtype=dtype)
    held = (f"{output}:scale", f"{output}:zero")
    zeros = np.zeros(params.channels) if zero is None else zero
    constants = {held[0]: scale.reshape(-1), held[1]: zeros.reshape(-1).astype(np.float32)}
    specs = {name: TensorSpec((params.channels,), "float32") for name in held}
    specs[output] = TensorSpec(shape, to)
    return Lowered((Kernel(params, (x, *held), output),), specs, constants)


def _type(node: Node, zero: np.ndarray | None) -> str:
    """What it quantizes to: the zero point's type, or the one that is named, or uint8."""
    if zero is not None:
        return zero.dtype.name
    named = int(node.attributes.get("output_dtype", 0))
    return onnx.helper.tensor_dtype_to_np_dtype(named).name if named else "uint8"


def _sizes(node: Node, scale: np.ndarray, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """What lies before the axis that has a scale each, the scales, and what lies behind it."""
    if scale.size == 1:
        return 1, 1, math.prod(shape)
    axis = normal_axis(int(node.attributes.get("axis", 1)), len(shape))
    if scale.shape != (shape[axis],):
        raise Refused(
            f"its scale of shape {scale.shape} does not fit axis {axis} of an input of shape {shape}"
        )
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
