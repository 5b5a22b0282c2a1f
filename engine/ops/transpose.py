"""Transpose: axes permuted; a view where only axes of size 1 move. DepthToSpace and SpaceToDepth: one
transposition of the same bytes under six axes."""

from __future__ import annotations

import itertools
import math

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, operator, view
from kernels.ops.transpose import Transpose


@operator("Transpose")
def _transpose(node: Node, scope: Scope) -> Lowered:
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
    wide_axes = [axis for axis in range(len(shape)) if shape[axis] != 1]
    follower = dict(itertools.pairwise(wide_axes))
    for axis in (axis for axis in perm if shape[axis] != 1):
        if runs and follower.get(runs[-1][-1]) == axis:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    in_order = sorted(runs)
    sizes = tuple(math.prod(shape[axis] for axis in run) for run in in_order)
    return sizes, tuple(in_order.index(run) for run in runs)


@operator("DepthToSpace", "SpaceToDepth")
def _depth_space(node: Node, scope: Scope) -> Lowered:
    """x (n, c, h, w), b = blocksize → y (n, c / b², h · b, w · b), or the other way round."""
    x, b = node.inputs[0], int(node.attributes["blocksize"])
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    if len(shape) != 4 or b < 1:
        raise Refused(f"an input of shape {shape} and a blocksize of {b} do not go together")
    n, c, h, w = shape
    mode = node.attributes.get("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise Refused(f"its mode is {mode!r}, and DCR and CRD are supported")
    if node.op_type == "SpaceToDepth":
        if h % b or w % b:
            raise Refused(f"an image of {h} × {w} does not divide into blocks of {b}")
        six = (n, c, h // b, b, w // b, b)
        perm = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
        out = (n, c * b * b, h // b, w // b)
    else:
        if c % (b * b):
            raise Refused(f"{c} channels do not divide into blocks of {b} × {b}")
        if mode == "DCR":
            six, perm = (n, b, b, c // (b * b), h, w), (0, 3, 4, 1, 5, 2)
        else:
            six, perm = (n, c // (b * b), b, b, h, w), (0, 1, 4, 2, 5, 3)
        out = (n, c // (b * b), h * b, w * b)
    sizes, order = merge_axes(six, perm)
    if order == tuple(range(len(order))):
        return view(node, scope, out)
    return kernel(node, Transpose(shape=sizes, perm=order, dtype=dtype), (x,), out, dtype)
