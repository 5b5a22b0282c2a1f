"""QuantizeLinear and DequantizeLinear, by tensor, by axis or by block.

Weights are dequantized at plan time, as anything that is constant (engine.passes.trace). A product between
DequantizeLinear and QuantizeLinear becomes one step of whole numbers (engine.passes.quantized); elsewhere a
QuantizeLinear and the DequantizeLinear behind it become one step (engine.passes.fuse). So it is of eight bits
with scales in float32 for the tensor or an axis; all else is written as the nodes that it is the same as.
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import onnx

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, Scope, View, normal_axis, operator, optional_input
from engine.ops._nodes import Nodes, number_of, written
from kernels.ops import FLOATS, FLOATS8
from kernels.ops.cast import Cast
from kernels.ops.quantize import THROUGH, Quantize

_WHOLE = ("uint8", "int8", "uint16", "int16", "uint4", "int4", "uint2", "int2")
_FLOATING = (*FLOATS8, "float4_e2m1fn")  # of eight bits and four


@operator("DequantizeLinear", "QuantizeLinear")
def lower(node: Node, scope: Scope) -> Lowered:
    """x, scale, optional zero point → y of the same shape."""
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    scale, zero = node.inputs[1], optional_input(node, 2)
    of_scale, of_zero = scope.spec(scale), scope.spec(zero) if zero else None
    quantizes = node.op_type == "QuantizeLinear"
    through = _type(node, of_zero) if quantizes else dtype
    to = through if quantizes else _named(node) or of_scale.dtype
    if through not in (*_WHOLE, *_FLOATING) and (quantizes or through != "int32"):
        raise Refused(f"it goes through {through}, which is no type that ONNX quantizes to")
    one = of_zero is not None and math.prod(of_zero.shape) == math.prod(of_scale.shape) == 1
    if of_zero is not None and (of_zero.dtype != through or not (one or of_zero.shape == of_scale.shape)):
        raise Refused(
            f"its zero point is {of_zero.dtype} of shape {of_zero.shape}, and does not fit its scale"
        )
    floats = {of_scale.dtype, dtype if quantizes else to}
    if through not in THROUGH or floats != {"float32"} or node.attributes.get("block_size", 0):
        return _quantized(node, scope, to) if quantizes else _dequantized(node, scope, to)
    params = Quantize(*_sizes(node, of_scale.shape, shape), through=through, to=to, dtype=dtype)
    intermediates = (f"{output}:scale", f"{output}:zero")
    specs = {name: TensorSpec((params.channels,), "float32") for name in intermediates}
    specs[output] = TensorSpec(shape, to)
    constants: dict[str, np.ndarray] = {}
    items: list[Kernel | View] = []
    if scale in scope.constants:
        constants[intermediates[0]] = scope.constants[scale].reshape(-1)
    else:
        items.append(View(scale, intermediates[0]))
    if not zero or zero in scope.constants:
        values = scope.constants[zero] if zero else np.zeros(params.channels)
        constants[intermediates[1]] = values.reshape(-1).astype(np.float32)
    else:
        items.append(Kernel(Cast(params.channels, through, "float32"), (zero,), intermediates[1]))
    return Lowered((*items, Kernel(params, (x, *intermediates), output)), specs, constants)


def _type(node: Node, zero: TensorSpec | None) -> str:
    """What it quantizes to: the zero point's type, or the one that is named, or uint8."""
    return zero.dtype if zero is not None else _named(node) or "uint8"


def _named(node: Node, attribute: str = "output_dtype") -> str:
    """An element type among the attributes; "" where there is none."""
    named = int(node.attributes.get(attribute) or 0)
    return onnx.helper.tensor_dtype_to_np_dtype(named).name if named else ""


def _quantized(node: Node, scope: Scope, to: str) -> Lowered:
    """The quotient in the type of x, as ONNX has it, or in the one that is named (precision)."""
    nodes, (x, scale) = Nodes(node, scope), node.inputs[:2]
    zero = optional_input(node, 2)
    dtypes = {nodes.dtype(x), nodes.dtype(scale)}
    within = _named(node, "precision") or (dtypes.pop() if len(dtypes) == 1 else "float32")
    if within not in FLOATS:
        raise Refused(f"it divides numbers of {within}, and {', '.join(FLOATS)} are supported")
    y = nodes("Div", _as(nodes, x, within), _spread(nodes, scale, within))
    if to in _FLOATING:
        _check_zero(nodes, zero)
        saturate = int(node.attributes.get("saturate", 1))
        nodes("Cast", y, to=number_of(to), saturate=saturate, output=node.outputs[0])
        return nodes.lowered()
    y = nodes("Round", _as(nodes, y, "float32"))  # halves to the even neighbour
    if zero:
        y = nodes("Add", y, _spread(nodes, zero, "float32"))
    info = ml_dtypes.iinfo(to)
    limits = (nodes.constant(np.float32(limit)) for limit in (info.min, info.max))
    nodes("Cast", nodes("Clip", y, *limits), to=number_of(to), output=node.outputs[0])
    return nodes.lowered()


def _dequantized(node: Node, scope: Scope, to: str) -> Lowered:
    """In float32, rounded once to the type of the scale, or to the one that is named."""
    nodes, (x, scale) = Nodes(node, scope), node.inputs[:2]
    zero = optional_input(node, 2)
    if to not in FLOATS:
        raise Refused(f"it gives {to}, and {', '.join(FLOATS)} are supported")
    y = _as(nodes, x, "float32")
    if nodes.dtype(x) in _FLOATING:
        _check_zero(nodes, zero)
    elif zero:
        y = nodes("Sub", y, _spread(nodes, zero, "float32"))
    rounds = to != "float32"
    y = nodes("Mul", y, _spread(nodes, scale, "float32"), output="" if rounds else node.outputs[0])
    if rounds:
        nodes("Cast", y, to=number_of(to), output=node.outputs[0])
    return nodes.lowered()


def _as(nodes: Nodes, name: str, dtype: str) -> str:
    return name if nodes.dtype(name) == dtype else nodes("Cast", name, to=number_of(dtype))


def _check_zero(nodes: Nodes, zero: str) -> None:
    """Raises Refused for a zero point of floating point that is not 0, which ONNX does not allow."""
    value = nodes.scope.constants.get(zero)
    if zero and (value is None or value.astype(np.float32).any()):
        raise Refused("its zero point is floating point, which has to be 0 and known when a plan is made")


def _spread(nodes: Nodes, name: str, dtype: str) -> str:
    """A scale or zero point in a type and a shape that broadcasts to x: one number, one for each place along
    the axis, or one for so many places of it (block_size), of which the last block may be cut."""
    shape, spread_shape = nodes.shape(nodes.node.inputs[0]), nodes.shape(name)
    value = nodes.scope.constants.get(name)
    name = _as(nodes, name, dtype) if value is None else nodes.constant(value.astype(dtype))
    if math.prod(spread_shape) == 1:
        return nodes.shaped(name, ())
    axis = normal_axis(int(nodes.node.attributes.get("axis", 1)), len(shape))
    block = int(nodes.node.attributes.get("block_size", 0))
    if not block:
        if spread_shape != (shape[axis],):
            raise Refused(
                f"its scale of shape {spread_shape} does not fit axis {axis} of an input of shape {shape}"
            )
        return nodes.shaped(name, (-1, *(1,) * (len(shape) - axis - 1)))
    if len(spread_shape) != len(shape) or spread_shape != (
        *shape[:axis],
        -(-shape[axis] // block),
        *shape[axis + 1 :],
    ):
        raise Refused(
            f"its scale of shape {spread_shape} does not fit blocks of {block} along axis {axis} of {shape}"
        )
    places = np.arange(shape[axis], dtype=np.int64) // block
    if value is not None:
        return nodes.constant(np.take(value.astype(dtype), places, axis))
    return nodes("Gather", name, nodes.constant(places), axis=axis)


def _sizes(node: Node, scale: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, int, int]:
    """What lies before the axis that has a scale each, the scales, and what lies behind it."""
    if math.prod(scale) == 1:
        return 1, 1, math.prod(shape)
    axis = normal_axis(int(node.attributes.get("axis", 1)), len(shape))
    if scale != (shape[axis],):
        raise Refused(f"its scale of shape {scale} does not fit axis {axis} of an input of shape {shape}")
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


# ----------------------------------------------------------------------------------------- dynamic quantize

# DynamicQuantizeLinear: to uint8 by a scale that the tensor's own range gives, as several steps.
#
# "y_scale = (maximum(0, max(x)) − minimum(0, min(x))) / 255, intermediate_zero_point = 0 − min(x) / y_scale,
# y_zero_point = cast(round(saturate(intermediate_zero_point))), y = saturate(round(x / y_scale) +
# y_zero_point)"; where x is 0 everywhere its range is taken for 1, as onnx.reference has it, and y is 0.


@written("DynamicQuantizeLinear")
def _dynamic_quantize(node: Node, nodes: Nodes) -> None:
    """x float32 → y uint8, its scale (), float32, and its zero point (), uint8; those that are read."""
    x, shape, dtype = nodes.around.first(node)
    if dtype != "float32":
        raise Refused(f"it quantizes {dtype}, and float32 is supported")
    y, scale_out, zero_out = (*node.outputs, "", "")[:3]
    none, steps, unit = (nodes.constant(value, np.float32) for value in (0, 255, 1))
    most = nodes("Max", nodes("ReduceMax", x, keepdims=0), none)
    least = nodes("Min", nodes("ReduceMin", x, keepdims=0), none)
    width = nodes("Where", nodes("Equal", most, least), unit, nodes("Sub", most, least))
    scale = nodes("Div", width, steps, output=scale_out)
    begin = nodes("Clip", nodes("Sub", none, nodes("Div", least, scale)), none, steps)
    zero = nodes("Round", begin)
    if zero_out:
        nodes("Cast", zero, output=zero_out, to=onnx.TensorProto.UINT8)
    if y:  # last: it is what the node is looked at by
        nodes.kernel(Quantize(1, 1, math.prod(shape), "uint8", to="uint8"), (x, scale, zero), shape, y)
