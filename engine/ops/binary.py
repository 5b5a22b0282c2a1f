"""Add, Sub, Mul, Div with NumPy broadcasting (opset 7 and later)."""

from __future__ import annotations

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, contiguous_strides, kernel
from kernels.ops.binary import Binary

OP_TYPES = ("Add", "Div", "Mul", "Sub")


def lower(node: Node, scope: Scope) -> Lowered:
    """a, b → y of their broadcast shape."""
    a, b = node.inputs
    shape_a, shape_b = scope.shape(a), scope.shape(b)
    shape = broadcast(shape_a, shape_b)
    dtype = scope.spec(a).dtype
    binary = binary_params(node.op_type.lower(), shape_a, shape_b, shape, dtype)
    return kernel(node, binary, (a, b), shape, dtype)


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that a and b broadcast to. Raises Refused."""
    rank = max(len(a), len(b))
    pairs = list(zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True))
    if any(x != y and 1 not in (x, y) for x, y in pairs):
        raise Refused(f"shapes {a} and {b} do not broadcast")
    return tuple(y if x == 1 else x for x, y in pairs)


def binary_params(
    kind: str, shape_a: tuple[int, ...], shape_b: tuple[int, ...], shape: tuple[int, ...], dtype: str
) -> Binary:
    """Params with as few axes as can be: neighbouring axes that both operands walk evenly are one, so that
    equal shapes are one axis and a channel vector over (n, c, h, w) is (n, c, h · w)."""
    strides_a, strides_b = _broadcast_strides(shape_a, shape), _broadcast_strides(shape_b, shape)
    merged: list[tuple[int, int, int]] = []
    for size, stride_a, stride_b in zip(shape, strides_a, strides_b, strict=True):
        if size == 1:
            continue
        if merged:
            outer, outer_a, outer_b = merged[-1]
            if outer_a == stride_a * size and outer_b == stride_b * size:
                merged[-1] = (outer * size, stride_a, stride_b)
                continue
        merged.append((size, stride_a, stride_b))
    if not merged:
        merged = [(1, 1, 1)]
    sizes, first, second = zip(*merged, strict=True)
    return Binary(kind=kind, shape=sizes, strides_a=first, strides_b=second, dtype=dtype)


def _broadcast_strides(operand: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    dense = contiguous_strides(operand)
    strides = tuple(0 if size == 1 else stride for size, stride in zip(operand, dense, strict=True))
    return (0,) * (len(shape) - len(operand)) + strides
