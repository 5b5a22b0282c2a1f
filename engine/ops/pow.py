"""Pow: a product, a function of one element or an operation of two, by what is known of the exponent."""

from __future__ import annotations

import math

import numpy as np

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, operator, view
from engine.ops._nodes import Nodes, number_of
from engine.ops.binary import binary_params, broadcast
from engine.ops.unary import unary
from kernels.ops import FLOATS, WIDER


@operator("Pow")
def lower(node: Node, scope: Scope) -> Lowered:
    """x, exponent → y of their broadcast shape and x's type."""
    x, exponent = node.inputs
    given = scope.spec(x)
    shape, dtype = broadcast(given.shape, scope.shape(exponent)), given.dtype
    # What a whole number of 16 bits is beyond 2⁵³ float64 does not know, and its last bits are the answer.
    if dtype not in FLOATS and (dtype in WIDER or np.dtype(dtype).kind != "i"):
        raise Refused(f"it computes in {dtype}, and floating point, int8, int32 and int64 are supported")
    value = scope.constants.get(exponent)
    if value is not None and shape == given.shape and value.size and (value == value.flat[0]).all():
        number = float(value.flat[0])
        if number == 1:
            return view(node, scope, shape)
        if number == 2:
            return kernel(node, binary_params("mul", shape, shape, shape, dtype), (x, x), shape, dtype)
        if dtype == "float32" and math.isfinite(number):
            kind, alpha = ("reciprocal", 0.0) if number == -1 else ("pow", number)
            return kernel(node, unary(kind, shape, dtype, alpha), (x,), shape, dtype)
    return _of_two(node, scope, shape)


def _of_two(node: Node, scope: Scope, shape: tuple[int, ...]) -> Lowered:
    """Whole numbers by way of float64, in which those below 2⁵³ are exact; the exponent in the type of x."""
    nodes, output, dtype = Nodes(node, scope), node.outputs[0], scope.spec(node.inputs[0]).dtype
    wide = dtype if dtype in FLOATS else "float64"
    base, exponent = (
        name if nodes.dtype(name) == wide else nodes("Cast", name, to=number_of(wide)) for name in node.inputs
    )
    params = binary_params("pow", nodes.shape(base), nodes.shape(exponent), shape, wide)
    made = nodes.kernel(params, (base, exponent), shape, output if wide == dtype else "")
    if wide != dtype:
        nodes("Cast", made, to=number_of(dtype), output=output)
    return nodes.lowered()
