"""Operators of com.microsoft between eight-bit tensors, as ONNX Runtime writes them (QOperator).

QGemm is a product of whole numbers. The others are dequantized, worked out in floating point and quantized
again, which is what their text says; one rounding of float32 apart from exact arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops import binary as arithmetic
from engine.ops import concat, gemm, global_pool, pool, quantize, softmax, unary
from engine.ops._base import Kernel, Lowered, Refused, Scope, View, optional_input
from engine.ops._quantized import Behind, check_eight_bits, rewritten, scale_of, within
from engine.ops.integer import factor, one_scale, out_zero
from kernels.ops.quantize import Quantize

DOMAIN = "com.microsoft"
_ARITHMETIC = {"QLinearAdd": "Add", "QLinearMul": "Mul"}
_FUNCTIONS: dict[str, tuple[str, Callable[[Node, Scope], Lowered]]] = {
    "QLinearAveragePool": ("AveragePool", pool.lower),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", global_pool.lower),
    "QLinearLeakyRelu": ("LeakyRelu", unary.lower),
    "QLinearSigmoid": ("Sigmoid", unary.lower),
    "QLinearSoftmax": ("Softmax", softmax.lower),
}
_SAME = ("DequantizeLinear", "QuantizeLinear")
OP_TYPES = (
    "QGemm",
    "QLinearConcat",
    *_ARITHMETIC,
    *_FUNCTIONS,
    *_SAME,
)

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


def lower(node: Node, scope: Scope) -> Lowered:
    """Eight-bit tensors, each with its scale and zero point → one by the scale and the zero point of y."""
    if node.op_type in _SAME:
        return quantize.lower(node, scope)
    if node.op_type == "QGemm":
        return _product(node, scope)
    if node.op_type in _ARITHMETIC:
        return _between(node, scope, ((0, 1, 2), (3, 4, 5)), (6, 7))
    if node.op_type == "QLinearConcat":
        return _between(node, scope, tuple((i, i + 1, i + 2) for i in range(2, len(node.inputs), 3)), (0, 1))
    return _between(node, scope, ((0, 1, 2),), (3, 4))


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
    y = node.outputs[0]
    items: list[Kernel | View] = []
    specs: dict[str, TensorSpec] = {}
    constants: dict[str, np.ndarray] = {}

    def done(made: Lowered) -> None:
        items.extend(made.items)
        specs.update(made.specs)
        constants.update(made.constants)

    first = scope.spec(node.inputs[given[0][0]]).dtype
    reals = []
    for number, (place, of_scale, of_zero) in enumerate(given):
        x = scope.spec(node.inputs[place])
        check_eight_bits(x.dtype)
        name, scale = f"{y}:real{number}", one_scale(node, scope, of_scale, "scale")
        _, zero = out_zero(node, scope, of_zero, x.dtype)
        params = Quantize(1, 1, math.prod(x.shape), x.dtype, "float32", x.dtype)
        done(_linear(params, node.inputs[place], name, scale, zero, x.shape))
        reals.append(name)
    opset = int(node.attributes.get("opset", scope.opset))  # of the operator of floating point
    inner = Scope(opset, {**scope.specs, **specs}, scope.constants, scope.consumed)
    result = f"{y}:result"
    kept = {name: value for name, value in node.attributes.items() if name not in ("opset", "channels_last")}
    plain = replace(node, domain="", inputs=tuple(reals), outputs=(result,), attributes=kept)
    if node.attributes.get("channels_last", 0):
        raise Refused("its channels come last, and channels behind the batch are supported")
    if node.op_type in _ARITHMETIC:
        done(arithmetic.lower(replace(plain, op_type=_ARITHMETIC[node.op_type]), inner))
    elif node.op_type == "QLinearConcat":
        done(concat.lower(replace(plain, op_type="Concat"), inner))
    else:
        op_type, made = _FUNCTIONS[node.op_type]
        done(made(replace(plain, op_type=op_type), inner))
    shape = specs[result].shape
    to, zero = out_zero(node, scope, out[1], first)
    scale = one_scale(node, scope, out[0], "last scale")
    done(_linear(Quantize(1, 1, math.prod(shape), to, to), result, y, scale, zero, shape))
    return Lowered(tuple(items), specs, constants)


def _linear(
    params: Quantize, x: str, y: str, scale: np.ndarray, zero: int, shape: tuple[int, ...]
) -> Lowered:
    """One QuantizeLinear or DequantizeLinear by one scale."""
    held = (f"{y}:scale", f"{y}:zero")
    specs = {name: TensorSpec((1,), "float32") for name in held} | {y: TensorSpec(shape, params.to)}
    return Lowered(
        (Kernel(params, (x, *held), y),), specs, {held[0]: scale, held[1]: np.array([zero], np.float32)}
    )
