"""Operations of two tensors or more with NumPy broadcasting: arithmetic, comparisons, choices, powers
(opset 7 and later)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, Scope, contiguous_strides, kernel, operator, view
from engine.ops._nodes import Nodes, number_of, written
from engine.ops.unary import unary
from kernels.ops import FLOATS, WIDER
from kernels.ops.binary import Binary
from kernels.ops.compare import Compare
from kernels.ops.where import Where

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
    dtypes = list(dict.fromkeys(scope.spec(name).dtype for name in names))
    if len(dtypes) > 1:
        raise Refused(f"its inputs are of {' and '.join(dtypes)}, and they must be of one type")
    return dtypes[0]


def chained(node: Node, scope: Scope, kind: str, dtype: str) -> Lowered:
    """x0, x1, … → y of their broadcast shape, one operation behind the other."""
    output, last = node.outputs[0], len(node.inputs) - 1
    items: list[Kernel] = []
    specs: dict[str, TensorSpec] = {}
    so_far, shape = node.inputs[0], scope.shape(node.inputs[0])
    for index, name in enumerate(node.inputs[1:], start=1):
        whole = broadcast(shape, scope.shape(name))
        target = output if index == last else f"{output}:{kind}{index}"
        items.append(
            Kernel(binary_params(kind, shape, scope.shape(name), whole, dtype), (so_far, name), target)
        )
        specs[target] = TensorSpec(whole, dtype)
        so_far, shape = target, whole
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
    sizes, *operand_strides = zip(*(merged or [(1,) * (1 + len(operands))]), strict=True)
    return sizes, operand_strides


def _broadcast_strides(operand: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    dense = contiguous_strides(operand)
    strides = tuple(0 if size == 1 else stride for size, stride in zip(operand, dense, strict=True))
    return (0,) * (len(shape) - len(operand)) + strides


@written("Mean")
def _mean(node: Node, nodes: Nodes) -> None:
    """x0, x1, … → y of their broadcast shape."""
    count, output = len(node.inputs), node.outputs[0]
    total = nodes("Sum", *node.inputs, output=output if count == 1 else "")
    if count > 1:
        nodes("Div", total, nodes.constant(count, nodes.dtype(total)), output=output)


# --------------------------------------------------------------------------------------------------- expand

# Expand: x broadcast against another shape, by an operation with a number that changes nothing.


@operator("Expand")
def _expand(node: Node, scope: Scope) -> Lowered:
    """x → y of the broadcast shape: x · 1, or x or false."""
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    wanted = scope.integers(node, 1, "shape")
    if wanted is None or min(wanted, default=1) < 1:
        raise Refused(f"its shape {wanted} is not a shape")
    out = broadcast(shape, tuple(wanted))
    if out == shape:
        return view(node, scope, shape)
    kind, value = ("or", False) if dtype == "bool" else ("mul", 1)
    name = f"{output}:number"
    expanding = Kernel(binary_params(kind, shape, (), out, dtype), (x, name), output)
    specs = {output: TensorSpec(out, dtype), name: TensorSpec((), dtype)}
    return Lowered((expanding,), specs, {name: np.array(value, dtype)})


@operator("Where")
def _where(node: Node, scope: Scope) -> Lowered:
    """condition, a, b → y of their broadcast shape."""
    if (condition := scope.spec(node.inputs[0]).dtype) != "bool":
        raise Refused(f"its condition is of {condition}, and truth values are wanted")
    dtype, shapes = one_type(node.inputs[1:], scope), [scope.shape(name) for name in node.inputs]
    shape = broadcast(*shapes)
    sizes, (c, a, b) = walks(shape, *shapes)
    where = Where(shape=sizes, strides_c=c, strides_a=a, strides_b=b, dtype=dtype)
    return kernel(node, where, tuple(node.inputs), shape, dtype)


# -------------------------------------------------------------------------------------------------- compare

# Comparisons, with NumPy broadcasting; IsNaN and IsInf by them: a NaN differs from itself.


_COMPARISONS = {
    "Equal": "equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
}


@operator(*_COMPARISONS)
def _compare(node: Node, scope: Scope) -> Lowered:
    """a, b → y of their broadcast shape and bool."""
    a, b = node.inputs
    dtype, shapes = one_type(node.inputs, scope), (scope.shape(a), scope.shape(b))
    shape = broadcast(*shapes)
    sizes, (first, second) = walks(shape, *shapes)
    kind = _COMPARISONS[node.op_type]
    params = Compare(kind=kind, shape=sizes, strides_a=first, strides_b=second, dtype=dtype)
    return kernel(node, params, (a, b), shape, "bool")


@written("IsInf", "IsNaN")
def _ends(node: Node, nodes: Nodes) -> None:
    """x → y of its shape and bool."""
    x, shape, dtype = nodes.around.first(node)
    output = node.outputs[0]
    if dtype not in FLOATS:
        raise Refused(f"its input is of {dtype}, and floating point is wanted")
    if node.op_type == "IsNaN":
        nodes("Not", nodes("Equal", x, x), output=output)
        return
    below, above = (bool(node.attributes.get(f"detect_{which}", 1)) for which in ("negative", "positive"))
    if not below and not above:
        nodes.constant(np.zeros(shape, np.bool_), output=output)
        return
    end = nodes.constant(math.inf if above else -math.inf, dtype)
    nodes("Equal", nodes("Abs", x) if below and above else x, end, output=output)


# ------------------------------------------------------------------------------------------------------ pow

# Pow: a product, a function of one element or an operation of two, by what is known of the exponent.


@operator("Pow")
def _pow(node: Node, scope: Scope) -> Lowered:
    """x, exponent → y of their broadcast shape and x's type."""
    x, exponent = node.inputs
    base_spec = scope.spec(x)
    shape, dtype = broadcast(base_spec.shape, scope.shape(exponent)), base_spec.dtype
    # What a whole number of 16 bits is beyond 2⁵³ float64 does not know, and its last bits are the answer.
    if dtype not in FLOATS and (dtype in WIDER or np.dtype(dtype).kind != "i"):
        raise Refused(f"it computes in {dtype}, and floating point, int8, int32 and int64 are supported")
    value = scope.constants.get(exponent)
    if value is not None and shape == base_spec.shape and value.size and (value == value.flat[0]).all():
        number = float(value.flat[0])
        if number == 1:
            return view(node, scope, shape)
        if number == 2:
            return kernel(node, binary_params("mul", shape, shape, shape, dtype), (x, x), shape, dtype)
        if dtype == "float32" and math.isfinite(number):
            kind, alpha = ("reciprocal", 0.0) if number == -1 else ("pow", number)
            return kernel(node, unary(kind, shape, dtype, alpha), (x,), shape, dtype)
    return _of_two(node, scope, shape)


def _of_two(node: Node, scope: Scope, shape: tuple[int, ...]) -> Lowered:
    """Whole numbers by way of float64, in which those below 2⁵³ are exact; the exponent in the type of x."""
    nodes, output, dtype = Nodes(node, scope), node.outputs[0], scope.spec(node.inputs[0]).dtype
    wide = dtype if dtype in FLOATS else "float64"
    base, exponent = (
        name if nodes.dtype(name) == wide else nodes("Cast", name, to=number_of(wide)) for name in node.inputs
    )
    params = binary_params("pow", nodes.shape(base), nodes.shape(exponent), shape, wide)
    result = nodes.kernel(params, (base, exponent), shape, output if wide == dtype else "")
    if wide != dtype:
        nodes("Cast", result, to=number_of(dtype), output=output)
    return nodes.lowered()
