"""The Reduce… operators over any axes, ArgMax and ArgMin, LpNormalization, which divides by
a norm, and CumSum and CumProd along a constant axis.

Axes that lie side by side are reduced as one. Of several that do not, the last come first, and what that
leaves is reduced along the others: a sum of sums is the sum, and so with each of these, but that a square or
a logarithm is taken once (`_CHAINS`). The mean or the maximum over the spatial axes of (n, c, h, w) is a
global pool by another name, which is how PyTorch's newer exporter writes it, and runs as one.
"""

from __future__ import annotations

import math
from itertools import groupby

import ml_dtypes
import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import (
    Kernel,
    Lowered,
    Refused,
    Scope,
    kernel,
    normal_axis,
    operator,
    optional_input,
    view,
)
from engine.ops.binary import binary_params
from engine.ops.pool import global_pool
from kernels.ops import FLOATS
from kernels.ops.cumulate import Cumulate
from kernels.ops.reduce import Reduce

# What several steps do, one after the other: the first, those behind it, the last. One step alone does what
# the operator is called.
_CHAINS = {
    "ReduceSum": ("sum", "sum", "sum"),
    "ReduceMean": ("mean", "mean", "mean"),
    "ReduceMax": ("max", "max", "max"),
    "ReduceMin": ("min", "min", "min"),
    "ReduceProd": ("prod", "prod", "prod"),
    "ReduceL1": ("l1", "sum", "sum"),
    "ReduceL2": ("l2", "l2", "l2"),
    "ReduceSumSquare": ("sumsquare", "sum", "sum"),
    "ReduceLogSum": ("sum", "sum", "logsum"),
    "ReduceLogSumExp": ("logsumexp", "logsumexp", "logsumexp"),
}
_UNCHANGED = ("sum", "mean", "max", "min", "prod", "logsumexp")  # one element
_WHOLE = ("sum", "max", "min", "prod", "l1", "sumsquare")  # that whole numbers have
_POOLS = {"ReduceMax": "max", "ReduceMean": "average"}


@operator(*_CHAINS, "ArgMax", "ArgMin", "LpNormalization")
def lower(node: Node, scope: Scope) -> Lowered:
    """x → y with the axes of size 1 (keepdims) or gone; the axes are an attribute or a constant input."""
    if node.op_type == "LpNormalization":
        return _divided(node, scope)
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    if node.op_type.startswith("Arg"):
        axes = [normal_axis(int(node.attributes.get("axis", 0)), len(shape))]
    else:
        axes = _axes(node, scope, len(shape))
    keep = node.attributes.get("keepdims", 1)
    out = tuple(1 if a in axes else d for a, d in enumerate(shape) if keep or a not in axes)
    if node.op_type.startswith("Arg"):
        return _place(node, shape, axes[0], out, dtype)
    if node.op_type in _POOLS and axes == [2, 3] and len(shape) == 4 and dtype in FLOATS:
        pool = global_pool(_POOLS[node.op_type], shape, dtype)
        return Lowered((Kernel(pool, (x,), output),), {output: TensorSpec(out, dtype)})
    items, specs = _chain(node.op_type, x, shape, axes, dtype, output)
    if not items:
        return view(node, scope, out)
    return Lowered(items, {**specs, output: TensorSpec(out, dtype)})


def _chain(
    op_type: str, x: str, shape: tuple[int, ...], axes: list[int], dtype: str, output: str
) -> tuple[tuple[Kernel, ...], dict[str, TensorSpec]]:
    """The kernels that reduce x along these axes, in order, none where x stays as it is; and what lies
    between them. Raises Refused."""
    alone = op_type.removeprefix("Reduce").lower()
    if dtype not in FLOATS and alone not in _WHOLE:
        raise Refused(f"it computes in {dtype}, and floating point is supported")
    runs = _runs(shape, axes)
    if not runs:
        if alone in _UNCHANGED:
            return (), {}
        runs = [(len(shape), len(shape))]
    first, then, last = _CHAINS[op_type]
    kinds = [alone] if len(runs) == 1 else [first, *[then] * (len(runs) - 2), last]
    sizes = list(shape)
    items: list[Kernel] = []
    specs: dict[str, TensorSpec] = {}
    for kind, (begin, end) in zip(kinds, reversed(runs), strict=True):
        params = Reduce(
            kind=kind,
            outer=math.prod(sizes[:begin]),
            axis=math.prod(sizes[begin:end]),
            inner=math.prod(sizes[end:]),
            dtype=dtype,
        )
        sizes[begin:end] = [1] * (end - begin)
        target = output if (begin, end) == runs[0] else f"{output}:reduced{begin}"
        items.append(Kernel(params, (x,), target))
        if target != output:
            specs[target] = TensorSpec(tuple(sizes), dtype)
        x = target
    return tuple(items), specs


def _runs(shape: tuple[int, ...], axes: list[int]) -> list[tuple[int, int]]:
    """Axes that lie side by side as (first, one after the last); an axis of one element parts nothing."""
    runs: list[tuple[int, int]] = []
    reduced = [a for a in range(len(shape)) if a in axes or shape[a] == 1]
    for _, run in groupby(enumerate(reduced), lambda pair: pair[1] - pair[0]):
        members = [axis for _, axis in run]
        if any(axis in axes and shape[axis] > 1 for axis in members):
            runs.append((members[0], members[-1] + 1))
    return runs


def _place(node: Node, shape: tuple[int, ...], axis: int, out: tuple[int, ...], dtype: str) -> Lowered:
    params = Reduce(
        kind=node.op_type.lower(),
        outer=math.prod(shape[:axis]),
        axis=shape[axis],
        inner=math.prod(shape[axis + 1 :]),
        last=bool(node.attributes.get("select_last_index", 0)),
        dtype=dtype,
    )
    output = node.outputs[0]
    return Lowered((Kernel(params, (node.inputs[0],), output),), {output: TensorSpec(out, "int64")})


def _divided(node: Node, scope: Scope) -> Lowered:
    """x divided by its L1 or L2 norm along an axis. A norm of 0 becomes the least number there is, so that
    zeros stay zeros; no other norm changes."""
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    axis, p = normal_axis(int(node.attributes.get("axis", -1)), len(shape)), int(node.attributes.get("p", 2))
    if p not in (1, 2):
        raise Refused(f"its p is {p}, and 1 and 2 are supported")
    if dtype not in FLOATS:
        raise Refused(f"it computes in {dtype}, and floating point is supported")
    norm, least, divisor = f"{output}:norm", f"{output}:least", f"{output}:divisor"
    reduced_shape = tuple(1 if a == axis else d for a, d in enumerate(shape))
    reduced = Reduce(
        kind=f"l{p}",
        outer=math.prod(shape[:axis]),
        axis=shape[axis],
        inner=math.prod(shape[axis + 1 :]),
        dtype=dtype,
    )
    items = (
        Kernel(reduced, (x,), norm),
        Kernel(binary_params("add", reduced_shape, (), reduced_shape, dtype), (norm, least), divisor),
        Kernel(binary_params("div", shape, reduced_shape, shape, dtype), (x, divisor), output),
    )
    between = TensorSpec(reduced_shape, dtype)
    specs = {norm: between, divisor: between, least: TensorSpec((), dtype)}
    constants = {least: np.array(ml_dtypes.finfo(dtype).tiny, dtype)}
    return Lowered(items, {**specs, output: TensorSpec(shape, dtype)}, constants)


def _axes(node: Node, scope: Scope, rank: int) -> list[int]:
    """What is reduced, in order; empty where nothing is. Raises Refused."""
    attribute = node.attributes.get("axes")
    if optional_input(node, 1):
        attribute = scope.integers(node, 1, "axes")
    if not attribute:
        return [] if node.attributes.get("noop_with_empty_axes", 0) else list(range(rank))
    axes = sorted(normal_axis(int(axis), rank) for axis in attribute)
    if len(set(axes)) != len(axes):
        raise Refused(f"its axes {list(attribute)} name one axis twice")
    return axes


@operator("CumProd", "CumSum")
def _cumulate(node: Node, scope: Scope) -> Lowered:
    """x, axis → y of the same shape."""
    x, shape, dtype = scope.first(node)
    axis_constant = scope.constant(node, 1, "axis")
    if axis_constant is None or axis_constant.size != 1:
        raise Refused(f"its axis is {axis_constant}, and one number is wanted")
    axis = normal_axis(int(axis_constant.reshape(-1)[0]), len(shape))
    params = Cumulate(
        kind="sum" if node.op_type == "CumSum" else "prod",
        outer=math.prod(shape[:axis]),
        axis=shape[axis],
        inner=math.prod(shape[axis + 1 :]),
        exclusive=bool(node.attributes.get("exclusive", 0)),
        reverse=bool(node.attributes.get("reverse", 0)),
        dtype=dtype,
    )
    return kernel(node, params, (x,), shape, dtype)
