"""MatMul: NumPy's, where the leading axes come down to one product or one even batch of products."""

from __future__ import annotations

import math

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel
from engine.ops.binary import broadcast
from kernels.ops.gemm import Gemm

OP_TYPES = ("MatMul",)


def lower(node: Node, scope: Scope) -> Lowered:
    """a (…, m, k), b (…, k, n) → y (…, m, n); an operand with one axis is a row (a) or a column (b)."""
    a, b = node.inputs
    shape_a, shape_b = scope.shape(a), scope.shape(b)
    if not shape_a or not shape_b:
        raise Refused("a scalar is no operand of a matrix product")
    *lead_a, m, k = shape_a if len(shape_a) > 1 else (1, *shape_a)
    *lead_b, k_b, n = shape_b if len(shape_b) > 1 else (*shape_b, 1)
    if k != k_b:
        raise Refused(f"operands of shape {shape_a} and {shape_b} do not share their inner size")
    lead = broadcast(tuple(lead_a), tuple(lead_b))
    batch, batch_a, batch_b = math.prod(lead), math.prod(lead_a), math.prod(lead_b)
    out = (*lead, *((m,) if len(shape_a) > 1 else ()), *((n,) if len(shape_b) > 1 else ()))
    dtype = scope.spec(a).dtype
    if batch_b == 1:
        # One b for all: the rows of every a are the rows of one product.
        gemm = Gemm(m=batch * m, n=n, k=k, dtype=dtype)
    elif batch_a in (1, batch) and batch_b == batch:
        gemm = Gemm(
            m=m, n=n, k=k, batch=batch, stride_a=m * k if batch_a > 1 else 0, stride_b=k * n, dtype=dtype
        )
    else:
        raise Refused(
            f"leading axes {tuple(lead_a)} and {tuple(lead_b)} broadcast against each other; "
            "supported are equal ones, or those of one operand alone"
        )
    return kernel(node, gemm, (a, b), out, dtype)
