"""Transpose: axes permuted; a view where only axes of size 1 move."""

from __future__ import annotations

import itertools
import math

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, operator, view
from kernels.ops.transpose import Transpose


@operator("Transpose")
def lower(node: Node, scope: Scope) -> Lowered:
    """x → y with y's axis i being x's axis perm[i]."""
    x, shape, dtype = scope.first(node)
    perm = tuple(node.attributes.get("perm", range(len(shape) - 1, -1, -1)))
    if sorted(perm) != list(range(len(shape))):
        raise Refused(f"its perm {perm} is no permutation of the axes of a tensor of shape {shape}")
    out = tuple(shape[axis] for axis in perm)
    sizes, order = merge_axes(shape, perm)
    if order == tuple(range(len(order))):
        return view(node, scope, out)
    return kernel(node, Transpose(shape=sizes, perm=order, dtype=dtype), (x,), out, dtype)


def merge_axes(shape: tuple[int, ...], perm: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The same transposition with as few axes as can be: size 1 dropped, axes that stay neighbours merged."""
    runs: list[list[int]] = []
    kept = [axis for axis in range(len(shape)) if shape[axis] != 1]
    follower = dict(itertools.pairwise(kept))
    for axis in (axis for axis in perm if shape[axis] != 1):
        if runs and follower.get(runs[-1][-1]) == axis:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    in_order = sorted(runs)
    sizes = tuple(math.prod(shape[axis] for axis in run) for run in in_order)
    return sizes, tuple(in_order.index(run) for run in runs)
