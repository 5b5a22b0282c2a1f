"""DynamicQuantizeLinear: to uint8 by a scale that the tensor's own range gives, as several steps.

"y_scale = (maximum(0, max(x)) − minimum(0, min(x))) / 255, intermediate_zero_point = 0 − min(x) / y_scale,
y_zero_point = cast(round(saturate(intermediate_zero_point))), y = saturate(round(x / y_scale) +
y_zero_point)"; where x is 0 everywhere its range is taken for 1, as onnx.reference has it, and y is 0.
"""

from __future__ import annotations

import math

import numpy as np
import onnx

from engine.graph.graph import Node
from engine.ops._base import Refused
from engine.ops._nodes import Nodes, written
from kernels.ops.quantize import Quantize


@written("DynamicQuantizeLinear")
def _dynamic_quantize(node: Node, nodes: Nodes) -> None:
    """x float32 → y uint8, its scale (), float32, and its zero point (), uint8; those that are read."""
    x, shape, dtype = nodes.around.first(node)
    if dtype != "float32":
        raise Refused(f"it quantizes {dtype}, and float32 is supported")
    y, scale_out, zero_out = (*node.outputs, "", "")[:3]
    none, steps, unit = (nodes.constant(value, np.float32) for value in (0, 255, 1))
    most = nodes("Max", nodes("ReduceMax", x, keepdims=0), none)
    least = nodes("Min", nodes("ReduceMin", x, keepdims=0), none)
    width = nodes("Where", nodes("Equal", most, least), unit, nodes("Sub", most, least))
    scale = nodes("Div", width, steps, output=scale_out)
    begin = nodes("Clip", nodes("Sub", none, nodes("Div", least, scale)), none, steps)
    zero = nodes("Round", begin)
    if zero_out:
        nodes("Cast", zero, output=zero_out, to=onnx.TensorProto.UINT8)
    if y:  # last: it is what the node is looked at by
        nodes.kernel(Quantize(1, 1, math.prod(shape), "uint8", to="uint8"), (x, scale, zero), shape, y)
