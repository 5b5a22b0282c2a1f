"""Operators of com.microsoft between eight-bit tensors, as ONNX Runtime writes them (QOperator).

QGemm is a product of whole numbers. The others are dequantized, worked out in floating point and quantized
again, which is what their text says; one rounding of float32 apart from exact arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from engine.graph.graph import Node
from engine.ops import gemm, quantize
from engine.ops._base import Lowered, Refused, Scope, operator, optional_input
from engine.ops._nodes import Nodes
from engine.ops._quantized import Behind, check_eight_bits, rewritten, scale_of, within
from engine.ops.integer import factor, one_scale, out_zero

DOMAIN = "com.microsoft"

_INSTEAD = (
    "the engine runs models in the QDQ form (quant_format QDQ of ONNX Runtime's quantize_static), where such "
    "an operator stands in floating point between DequantizeLinear and QuantizeLinear"
)
HINTS = dict.fromkeys(
    (
        *("QLinearReduceMean", "QLinearWhere"),
        *("DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "QAttention"),
    ),
    _INSTEAD,
)


operator("DequantizeLinear", "QuantizeLinear", domain=DOMAIN)(quantize.lower)


@operator("QLinearAdd", "QLinearMul", domain=DOMAIN)
def _arithmetic(node: Node, scope: Scope) -> Lowered:
    """a, its scale and zero, b, its, y's scale and zero → y."""
    return _between(node, scope, ((0, 1, 2), (3, 4, 5)), (6, 7))


@operator("QLinearConcat", domain=DOMAIN)
def _concat(node: Node, scope: Scope) -> Lowered:
    """y's scale and zero, x0, its scale and zero, … → y."""
    return _between(node, scope, tuple((i, i + 1, i + 2) for i in range(2, len(node.inputs), 3)), (0, 1))


@operator(
    *("QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearLeakyRelu"),
    *("QLinearSigmoid", "QLinearSoftmax"),
    domain=DOMAIN,
)
def _function(node: Node, scope: Scope) -> Lowered:
    """x, its scale and zero, y's scale and zero → y."""
    return _between(node, scope, ((0, 1, 2),), (3, 4))


@operator("QGemm", domain=DOMAIN)
def _product(node: Node, scope: Scope) -> Lowered:
    """a, its scale and zero, b, its, c int32, y's scale and zero → y; float32 without these."""
    a, b = node.inputs[0], node.inputs[3]
    check_eight_bits(scope.spec(a).dtype, scope.spec(b).dtype)
    attributes = {name: value for name, value in node.attributes.items() if name in ("transA", "transB")}
    plain = replace(node, op_type="Gemm", inputs=(a, b), attributes=attributes)
    factors = (
        factor(node, scope, a, 2, "first zero point"),
        factor(node, scope, b, 5, "weights' zero point"),
    )
    of_a, of_b = one_scale(node, scope, 1, "first scale"), scope.constant(node, 4, "weights' scale")
    c = scope.constant(node, 6, "c")
    if of_b is None or of_b.dtype != np.float32:
        raise Refused("the scale of its weights is not float32, and no other is supported")
    if c is not None and (c.dtype != np.int32 or (c.ndim > 1 and math.prod(c.shape[:-1]) != 1)):
        raise Refused(
            f"c is {c.dtype.name} of shape {c.shape}, and int32 with a number a column is supported"
        )
    alpha = np.array([float(node.attributes.get("alpha", 1.0))])
    behind = Behind(scale_of((of_a, of_b, alpha)), c)
    if optional_input(node, 7):
        to, zero = out_zero(node, scope, 8, scope.spec(a).dtype)
        low, high = within(to)
        scale = float(one_scale(node, scope, 7, "last scale")[0])
        behind = replace(behind, to=to, out_scale=scale, out_zero=zero, low=low, high=high)
    return rewritten(gemm.lower(plain, scope), *factors, behind)


def _between(
    node: Node, scope: Scope, given: tuple[tuple[int, int, int], ...], out: tuple[int, int]
) -> Lowered:
    """The operator of floating point between tensors that are dequantized (the places of each, of its scale
    and of its zero point) and an answer that is quantized (the places of its scale and its zero point)."""
    if node.attributes.get("channels_last", 0):
        raise Refused("its channels come last, and channels behind the batch are supported")
    # The operator of floating point may be of another opset.
    nodes = Nodes(node, scope, int(node.attributes.get("opset", scope.opset)))

    def linear(op_type: str, x: str, places: tuple[int, int], dtype: str, output: str = "") -> str:
        """One QuantizeLinear or DequantizeLinear by one scale. dtype: of eight bits, where no zero point
        says it."""
        scale = one_scale(node, scope, places[0], "scale")
        to, zero = out_zero(node, scope, places[1], dtype)
        parameters = nodes.constant(scale.reshape(()), np.float32), nodes.constant(zero, to)
        return nodes(op_type, x, *parameters, output=output)

    names = [node.inputs[place] for place, *_ in given]
    dtypes = [scope.spec(name).dtype for name in names]
    check_eight_bits(*dtypes)
    reals = [
        linear("DequantizeLinear", name, (of_scale, of_zero), dtype)
        for name, dtype, (_, of_scale, of_zero) in zip(names, dtypes, given, strict=True)
    ]
    attributes = {
        name: value for name, value in node.attributes.items() if name not in ("opset", "channels_last")
    }
    result = nodes(node.op_type.removeprefix("QLinear"), *reals, **attributes)
    linear("QuantizeLinear", result, out, dtypes[0], node.outputs[0])
    return nodes.lowered()
