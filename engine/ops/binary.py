"""Arithmetic of two tensors, or of several one behind the other, with NumPy broadcasting (opset 7 and
later)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, Scope, contiguous_strides, kernel, operator, view
from kernels.ops.binary import Binary

_KINDS = {
    **{name: name.lower() for name in ("Add", "Div", "Max", "Min", "Mod", "Mul", "PRelu", "Sub")},
    "Sum": "add",
    **{name: name.lower() for name in ("And", "Or", "Xor")},
}


@operator(*_KINDS)
def lower(node: Node, scope: Scope) -> Lowered:
    """a, b → y of their broadcast shape; of Max, Min and Sum a, b, c, …"""
    kind, dtype = _KINDS[node.op_type], one_type(node.inputs, scope)
    if kind in ("and", "or", "xor") and dtype != "bool":
        raise Refused(f"its inputs are of {dtype}, and truth values are wanted")
    if kind == "mod" and node.attributes.get("fmod", 0):
        kind = "fmod"
    if len(node.inputs) == 1:
        return view(node, scope, scope.shape(node.inputs[0]))
    if len(node.inputs) > 2:
        return chained(node, scope, kind, dtype)
    a, b = node.inputs
    shape_a, shape_b = scope.shape(a), scope.shape(b)
    shape = broadcast(shape_a, shape_b)
    if kind == "prelu" and shape != shape_a:
        raise Refused(f"its slopes of shape {shape_b} do not broadcast to the shape {shape_a} of its input")
    return kernel(node, binary_params(kind, shape_a, shape_b, shape, dtype), (a, b), shape, dtype)


def one_type(names: Sequence[str], scope: Scope) -> str:
    """The element type of all of these. Raises Refused where they differ."""
    found = list(dict.fromkeys(scope.spec(name).dtype for name in names))
    if len(found) > 1:
        raise Refused(f"its inputs are of {' and '.join(found)}, and they must be of one type")
    return found[0]


def chained(node: Node, scope: Scope, kind: str, dtype: str) -> Lowered:
    """x0, x1, … → y of their broadcast shape, one operation behind the other."""
    output, last = node.outputs[0], len(node.inputs) - 1
    items: list[Kernel] = []
    specs: dict[str, TensorSpec] = {}
    so_far, shape = node.inputs[0], scope.shape(node.inputs[0])
    for index, name in enumerate(node.inputs[1:], start=1):
        whole = broadcast(shape, scope.shape(name))
        made = output if index == last else f"{output}:{kind}{index}"
        items.append(
            Kernel(binary_params(kind, shape, scope.shape(name), whole, dtype), (so_far, name), made)
        )
        specs[made] = TensorSpec(whole, dtype)
        so_far, shape = made, whole
    return Lowered(tuple(items), specs)


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that these broadcast to. Raises Refused."""
    rank = max(map(len, shapes))
    axes = list(zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True))
    if any(len({size for size in axis if size != 1}) > 1 for axis in axes):
        raise Refused(f"shapes {' and '.join(map(str, shapes))} do not broadcast")
    return tuple(next((size for size in axis if size != 1), 1) for axis in axes)


def binary_params(
    kind: str, shape_a: tuple[int, ...], shape_b: tuple[int, ...], shape: tuple[int, ...], dtype: str
) -> Binary:
    """Params with as few axes as can be."""
    sizes, (first, second) = walks(shape, shape_a, shape_b)
    return Binary(kind=kind, shape=sizes, strides_a=first, strides_b=second, dtype=dtype)


def walks(
    shape: tuple[int, ...], *operands: tuple[int, ...]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Sizes, and each operand's strides: neighbouring axes that all operands walk evenly are one, so that
    equal shapes are one axis and a channel vector over (n, c, h, w) is (n, c, h · w)."""
    strides = [_broadcast_strides(operand, shape) for operand in operands]
    merged: list[tuple[int, ...]] = []
    for size, *steps in zip(shape, *strides, strict=True):
        if size == 1:
            continue
        if merged and all(outer == step * size for outer, step in zip(merged[-1][1:], steps, strict=True)):
            merged[-1] = (merged[-1][0] * size, *steps)
        else:
            merged.append((size, *steps))
    sizes, *found = zip(*(merged or [(1,) * (1 + len(operands))]), strict=True)
    return sizes, found


def _broadcast_strides(operand: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    dense = contiguous_strides(operand)
    strides = tuple(0 if size == 1 else stride for size, stride in zip(operand, dense, strict=True))
    return (0,) * (len(shape) - len(operand)) + strides
