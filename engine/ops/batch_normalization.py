"""BatchNormalization outside training: a multiplication and an addition a channel.

The fusion pass folds both into a Conv or Gemm before it; where there is none, they run as they are.
"""

from __future__ import annotations

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, Scope, operator
from engine.ops.binary import binary_params

STATISTICS = ("scale", "bias", "mean", "variance")


@operator("BatchNormalization")
def lower(node: Node, scope: Scope) -> Lowered:
    """x (n, c, …) → y = x · s + t, with s = scale / √(variance + epsilon) and t = bias − mean · s."""
    if node.attributes.get("training_mode", 0):
        raise Refused("it is in training mode (training_mode 1), and only inference is supported")
    scope.refuse_outputs(node, "running statistics")
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    # One value a channel, of which a tensor with one axis has one; in opset 7 also one a channel and pixel.
    of_pixels = scope.opset < 9 and not node.attributes.get("spatial", 1)
    wanted = shape[1:] if of_pixels or len(shape) < 2 else shape[1:2]
    statistics = []
    for index, what in enumerate(STATISTICS, start=1):
        array = scope.constant(node, index, what)
        if array is None or not shape or array.shape != (wanted or (1,)):
            raise Refused(f"its {what} should have the shape {wanted or (1,)} for an input of shape {shape}")
        statistics.append(array.astype(np.float64))
    scale, bias, mean, variance = statistics
    factor = scale / np.sqrt(variance + float(node.attributes.get("epsilon", 1e-5)))
    column = wanted if of_pixels else wanted + (1,) * (len(shape) - 2)
    scaled, factor_name, shift_name = f"{output}:scaled", f"{output}:scale", f"{output}:shift"
    # Kept in float64 so that folding into a weight rounds once; what a step reads is cast to its own type.
    constants = {
        factor_name: factor.reshape(column),
        shift_name: (bias - mean * factor).reshape(column),
    }
    spec = TensorSpec(shape, dtype)
    kernels = (
        Kernel(binary_params("mul", shape, column, shape, dtype), (x, factor_name), scaled),
        Kernel(binary_params("add", shape, column, shape, dtype), (scaled, shift_name), output),
    )
    specs = {
        scaled: spec,
        output: spec,
        factor_name: TensorSpec(column, dtype),
        shift_name: TensorSpec(column, dtype),
    }
    return Lowered(kernels, specs, constants)
