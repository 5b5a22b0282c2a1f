"""Pad: constant, reflect, edge and wrap."""

from __future__ import annotations

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, normal_axis, operator, view
from kernels.ops.pad import PAD_MODES, Pad


@operator("Pad")
def lower(node: Node, scope: Scope) -> Lowered:
    """x → y, larger by the pads (smaller where negative); attributes before opset 11, inputs from then on."""
    x, shape, dtype = scope.first(node)
    rank = len(shape)
    mode = node.attributes.get("mode", "constant")
    if mode not in PAD_MODES:
        raise Refused(f"its mode is {mode!r}, and {', '.join(PAD_MODES)} are supported")
    axes = list(range(rank))
    value = 0.0
    if scope.opset < 11:
        pads = [int(p) for p in node.attributes["pads"]]
        value = float(node.attributes.get("value", 0.0))
    else:
        pads_input = scope.integers(node, 1, "pads")
        if pads_input is None:
            raise Refused("it has no pads")
        pads = pads_input
        fill = scope.constant(node, 2, "constant_value")
        value = 0.0 if fill is None or fill.size == 0 else float(fill.reshape(-1)[0])
        chosen = scope.integers(node, 3, "axes")
        if chosen is not None:
            axes = [normal_axis(axis, rank) for axis in chosen]
    if len(pads) != 2 * len(axes) or len(set(axes)) != len(axes):
        raise Refused(f"its pads {pads} do not fit {len(axes)} axes")
    begin, end = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        begin[axis], end[axis] = pads[i], pads[len(axes) + i]
    out = tuple(size + b + e for size, b, e in zip(shape, begin, end, strict=True))
    if min(out, default=1) < 1:
        raise Refused(f"its pads {pads} leave nothing of a tensor of shape {shape}")
    if mode == "reflect" and any(max(b, e) >= s for s, b, e in zip(shape, begin, end, strict=True)):
        raise Refused(f"a tensor of shape {shape} is too small to be reflected by pads {pads}")
    if not any(begin) and not any(end):
        return view(node, scope, shape)
    sizes, begins, ends = merge_axes(shape, begin, end)
    pad = Pad(shape=sizes, begin=begins, end=ends, mode=mode, value=value, dtype=dtype)
    return kernel(node, pad, (x,), out, dtype)


def merge_axes(
    shape: tuple[int, ...], begin: list[int], end: list[int]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The same padding with neighbouring axes that are not padded taken as one."""
    merged: list[tuple[int, int, int]] = []
    for size, b, e in zip(shape, begin, end, strict=True):
        if merged and not b and not e and merged[-1][1:] == (0, 0):
            merged[-1] = (merged[-1][0] * size, 0, 0)
        else:
            merged.append((size, b, e))
    sizes, begins, ends = zip(*merged, strict=True)
    return sizes, begins, ends
