"""ConvInteger, MatMulInteger, QLinearConv and QLinearMatMul: products of eight-bit numbers, in whole numbers.

Sums are in 32 bits. What QLinearConv and QLinearMatMul make of them is worked out in double precision and
rounded once: the product of two float32 scales is exact in it, so what is a tie in exact arithmetic is one
here, and goes to the even neighbour.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.graph.graph import Node
from engine.ops import conv, gemm
from engine.ops._base import Lowered, Refused, Scope, operator, optional_input
from engine.ops._quantized import Behind, Whole, Zero, check_eight_bits, rewritten, scale_of, within

_REAL = ("float32", "float16")


@operator("ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul")
def lower(node: Node, scope: Scope) -> Lowered:
    """x and a weight, each with a zero point, of QLinear… with a scale → int32, or eight bits."""
    linear = node.op_type.startswith("QLinear")
    x, weight = (node.inputs[0], node.inputs[3 if linear else 1])
    places = (2, 5) if linear else (2, 3)
    check_eight_bits(scope.spec(x).dtype, scope.spec(weight).dtype)
    of_conv = node.op_type.endswith("Conv") or node.op_type == "ConvInteger"
    plain = replace(node, op_type="Conv" if of_conv else "MatMul", inputs=(x, weight))
    product = conv.lower(plain, scope) if of_conv else gemm.matmul(plain, scope)
    factors = (
        factor(node, scope, x, places[0], "first zero point"),
        factor(node, scope, weight, places[1], "weights' zero point"),
    )
    return rewritten(product, *factors, _behind(node, scope) if linear else None)


def factor(node: Node, scope: Scope, name: str, place: int, what: str) -> Whole:
    """A tensor that is multiplied, its zero point at this place of the node's inputs. Raises Refused."""
    dtype, zero = scope.spec(name).dtype, optional_input(node, place)
    if zero and scope.spec(zero).dtype != dtype:
        raise Refused(f"its {what} is {scope.spec(zero).dtype}, and what it belongs to {dtype}")
    zero_point: Zero = zero or None
    if zero in scope.constants:
        zero_point = scope.constants[zero]
        if zero_point.size > 1 and place == 2:  # rows of a, or all alike
            if (zero_point != zero_point.reshape(-1)[0]).any():
                raise Refused(f"its {what} has the shape {zero_point.shape}, and one for all is supported")
            zero_point = zero_point.reshape(-1)[:1]
    elif zero and int(np.prod(scope.shape(zero))) != 1:
        raise Refused(f"its {what} has the shape {scope.shape(zero)}, which is supported of constants alone")
    return Whole(name, dtype, zero_point, scope.constants.get(name))


def _behind(node: Node, scope: Scope) -> Behind:
    """What QLinear… does with a sum. Raises Refused where a scale depends on the graph's inputs."""
    scales = [one_scale(node, scope, place, what) for place, what in ((1, "first scale"), (6, "last scale"))]
    of_weight = scope.constant(node, 4, "weights' scale")
    bias = scope.constant(node, 8, "bias")
    if of_weight is None or of_weight.dtype.name not in _REAL:
        raise Refused(f"the scale of its weights is not {' or '.join(_REAL)}, and no other is supported")
    if bias is not None and bias.dtype != np.int32:
        raise Refused(f"its bias is {bias.dtype.name}, and int32 is wanted")
    to, zero = out_zero(node, scope, 7, scope.spec(node.inputs[0]).dtype)
    low, high = within(to)
    return Behind(scale_of((scales[0], of_weight)), bias, None, to, float(scales[1][0]), zero, low, high)


def one_scale(node: Node, scope: Scope, place: int, what: str) -> np.ndarray:
    """A constant scale of a whole tensor, (1,). Raises Refused."""
    scale = scope.constant(node, place, what)
    if scale is None or scale.dtype.name not in _REAL or scale.size != 1:
        words = "absent" if scale is None else f"{scale.dtype.name} of shape {scale.shape}"
        raise Refused(f"its {what} is {words}, and one {' or '.join(_REAL)} for all is supported")
    return scale.reshape(1)


def out_zero(node: Node, scope: Scope, place: int, otherwise: str) -> tuple[str, int]:
    """The type of the answer, which is its zero point's, and that. Raises Refused."""
    zero = scope.constant(node, place, "last zero point")
    if zero is None:
        return otherwise, 0
    check_eight_bits(zero.dtype.name)
    if zero.size != 1:
        raise Refused(f"its last zero point has the shape {zero.shape}, and one for all is supported")
    return zero.dtype.name, int(zero.reshape(-1)[0])
