"""Gemm: y = alpha · op(a) · op(b) + beta · c, with c broadcast to (m, n)."""

from __future__ import annotations

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, operator, optional_input
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
