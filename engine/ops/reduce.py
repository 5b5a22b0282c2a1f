"""ReduceMean, ReduceMax and ReduceSum over any axes: a pool whose window is all that is reduced, or a product
with ones, behind a transposition where those axes are not the last.

The mean over the spatial axes of (n, c, h, w) is GlobalAveragePool by another name, which is how PyTorch's
newer exporter writes it.
"""

from __future__ import annotations

import math

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, Scope, normal_axis, optional_input, view
from engine.ops.transpose import merge_axes
from kernels.ops.gemm import Gemm
from kernels.ops.pool import Pool
from kernels.ops.transpose import Transpose

OP_TYPES = ("ReduceMax", "ReduceMean", "ReduceSum")


def lower(node: Node, scope: Scope) -> Lowered:
    """x → y with the axes of size 1 (keepdims) or gone; the axes are an attribute or a constant input."""
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    axes = _axes(node, scope, len(shape))
    if not axes:
        return view(node, scope, shape)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    sizes = [shape[axis] for axis in kept]
    count = math.prod(shape[axis] for axis in axes)
    keep = node.attributes.get("keepdims", 1)
    out = tuple(1 if a in axes else d for a, d in enumerate(shape)) if keep else tuple(sizes)
    items: list[Kernel] = []
    specs = {output: TensorSpec(out, dtype)}
    order = (*kept, *axes)
    merged, perm = merge_axes(shape, order)
    if perm != tuple(range(len(perm))):
        turned = f"{output}:turned"
        items.append(Kernel(Transpose(shape=merged, perm=perm, dtype=dtype), (x,), turned))
        specs[turned] = TensorSpec(tuple(shape[axis] for axis in order), dtype)
        x = turned
    if node.op_type == "ReduceSum":
        ones = f"{output}:ones"
        gemm = Gemm(m=math.prod(sizes), n=1, k=count, dtype=dtype)
        specs[ones] = TensorSpec((count, 1), dtype)
        made = Kernel(gemm, (x, ones), output)
        return Lowered((*items, made), specs, {ones: np.ones((count, 1), dtype)})
    # Two axes as they are, for the kernels that know images; any others as one row.
    h, w = (shape[axis] for axis in axes) if len(axes) == 2 else (1, count)
    pool = Pool(
        kind="max" if node.op_type == "ReduceMax" else "average",
        n=sizes[0] if sizes else 1,
        c=math.prod(sizes[1:]),
        h=h,
        w=w,
        kh=h,
        kw=w,
        out_h=1,
        out_w=1,
        dtype=dtype,
    )
    return Lowered((*items, Kernel(pool, (x,), output)), specs)


def _axes(node: Node, scope: Scope, rank: int) -> list[int]:
    """What is reduced, in order; empty where nothing is. Raises Refused."""
    given = node.attributes.get("axes")
    if optional_input(node, 1):
        given = scope.integers(node, 1, "axes")
    if not given:
        return [] if node.attributes.get("noop_with_empty_axes", 0) else list(range(rank))
    axes = sorted(normal_axis(int(axis), rank) for axis in given)
    if len(set(axes)) != len(axes):
        raise Refused(f"its axes {list(given)} name one axis twice")
    return axes
