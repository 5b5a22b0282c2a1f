"""Gemm: y = alpha · op(a) · op(b) + beta · c, with c broadcast to (m, n); MatMul: NumPy's, as one product or
one batch of products."""

from __future__ import annotations

import math

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, Scope, View, kernel, operator, optional_input
from engine.ops._parts import taken
from engine.ops.binary import broadcast
from kernels.ops.gemm import Gemm


@operator("Gemm")
def lower(node: Node, scope: Scope) -> Lowered:
    """a (m, k) or (k, m), b (k, n) or (n, k), optional c → y (m, n)."""
    a, b = node.inputs[:2]
    bias = optional_input(node, 2)
    shape_a, shape_b = scope.shape(a), scope.shape(b)
    if len(shape_a) != 2 or len(shape_b) != 2:
        raise Refused(f"operands of shape {shape_a} and {shape_b} are not matrices")
    trans_a, trans_b = bool(node.attributes.get("transA", 0)), bool(node.attributes.get("transB", 0))
    m, k = reversed(shape_a) if trans_a else shape_a
    k_b, n = reversed(shape_b) if trans_b else shape_b
    if k != k_b:
        raise Refused(f"operands of shape {shape_a} and {shape_b} do not share their inner size")
    beta = float(node.attributes.get("beta", 1.0))
    stride_m = stride_n = 0
    if bias and beta == 0.0:
        bias = ""
    if bias:
        stride_m, stride_n = bias_strides(scope.shape(bias), m, n)
    dtype = scope.spec(a).dtype
    gemm = Gemm(
        m=m,
        n=n,
        k=k,
        trans_a=trans_a,
        trans_b=trans_b,
        alpha=float(node.attributes.get("alpha", 1.0)),
        beta=beta if bias else 1.0,
        bias=bool(bias),
        bias_stride_m=stride_m,
        bias_stride_n=stride_n if bias else 1,
        dtype=dtype,
    )
    return kernel(node, gemm, (a, b, bias) if bias else (a, b), (m, n), dtype)


def bias_strides(shape: tuple[int, ...], m: int, n: int) -> tuple[int, int]:
    """Elements between rows and between columns of a bias that broadcasts to (m, n). Raises Refused."""
    if len(shape) > 2:
        raise Refused(f"its bias of shape {shape} does not broadcast to ({m}, {n})")
    rows, columns = (1,) * (2 - len(shape)) + shape
    if rows not in (1, m) or columns not in (1, n):
        raise Refused(f"its bias of shape {shape} does not broadcast to ({m}, {n})")
    return (columns if rows > 1 else 0), (1 if columns > 1 else 0)


# --------------------------------------------------------------------------------------------------- matmul

# MatMul: NumPy's, as one product or one batch of products.


@operator("MatMul")
def matmul(node: Node, scope: Scope) -> Lowered:
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
    items: list[Kernel | View] = []
    specs = {node.outputs[0]: TensorSpec(out, dtype)}
    constants: dict[str, np.ndarray] = {}
    if batch_b > 1:
        # What broadcasts against several of the other is repeated; one alone serves all as it is.
        for place, (name, own, shape) in enumerate(((a, lead_a, (m, k)), (b, lead_b, (k, n)))):
            if math.prod(own) in (1, batch):
                continue
            repeated = f"{node.outputs[0]}:operand{place}"
            numbers = np.arange(math.prod(own)).reshape(own)
            lowered = taken(name, (numbers.size, *shape), 0, np.broadcast_to(numbers, lead), repeated, dtype)
            items += lowered.items
            specs |= lowered.specs
            constants |= lowered.constants
            a, b = (repeated, b) if place == 0 else (a, repeated)
        one_a = batch_a == 1
        gemm = Gemm(m=m, n=n, k=k, batch=batch, stride_a=0 if one_a else m * k, stride_b=k * n, dtype=dtype)
    else:
        # One b for all: the rows of every a are the rows of one product.
        gemm = Gemm(m=batch * m, n=n, k=k, dtype=dtype)
    return Lowered((*items, Kernel(gemm, (a, b), node.outputs[0])), specs, constants)
