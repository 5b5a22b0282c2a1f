"""MatMul: NumPy's, as one product or one batch of products."""

from __future__ import annotations

import math

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, Scope, View, operator
from engine.ops._parts import taken
from engine.ops.binary import broadcast
from kernels.ops.gemm import Gemm


@operator("MatMul")
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
            made = taken(name, (numbers.size, *shape), 0, np.broadcast_to(numbers, lead), repeated, dtype)
            items += made.items
            specs |= made.specs
            constants |= made.constants
            a, b = (repeated, b) if place == 0 else (a, repeated)
        one_a = batch_a == 1
        gemm = Gemm(m=m, n=n, k=k, batch=batch, stride_a=0 if one_a else m * k, stride_b=k * n, dtype=dtype)
    else:
        # One b for all: the rows of every a are the rows of one product.
        gemm = Gemm(m=batch * m, n=n, k=k, dtype=dtype)
    return Lowered((*items, Kernel(gemm, (a, b), node.outputs[0])), specs, constants)
