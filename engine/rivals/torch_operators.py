"""Each ONNX operator as PyTorch's operator of the same meaning; what PyTorch cannot do is refused with the
reason."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from engine.graph.graph import Node
from engine.ops._base import Refused, normal_axis, optional_input
from engine.ops._window import WindowAxis, integers, resolve
from engine.rivals.torch_translation import Handler, Translation

_INFINITY = float("inf")

HANDLERS: dict[str, Handler] = {}


def _of(*op_types: str) -> Callable[[Handler], Handler]:
    def keep(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(op_types, handler))
        return handler

    return keep


@_of("Conv")
def _conv(t: Translation, node: Node) -> Any:
    x, weight = t.value(node.inputs[0]), t.value(node.inputs[1])
    bias = t.value(optional_input(node, 2))
    kernel = t.shape(node.inputs[1])[2:]
    axes = resolve(node, t.shape(node.inputs[0])[2:], kernel)
    functions = {1: t.f.conv1d, 2: t.f.conv2d, 3: t.f.conv3d}
    if len(axes) not in functions:
        raise Refused(f"it has {len(axes)} spatial axes, and 1 to 3 are supported")
    even = all(axis.pad_begin == axis.pad_end for axis in axes)
    if not even:
        x = t.padded(x, [(axis.pad_begin, axis.pad_end) for axis in axes], 0.0)
    return t.call(
        functions[len(axes)],
        x,
        weight,
        bias,
        tuple(axis.stride for axis in axes),
        tuple(axis.pad_begin if even else 0 for axis in axes),
        tuple(axis.dilation for axis in axes),
        int(node.attributes.get("group", 1)),
    )


def _plain(axis: WindowAxis) -> bool:
    """Whether PyTorch's pooling has the same windows along this axis: equal pads of at most half a kernel,
    and only windows that fit."""
    extent = (axis.kernel - 1) * axis.dilation + 1
    fits = (axis.size + 2 * axis.pad_begin - extent) // axis.stride + 1
    return axis.pad_begin == axis.pad_end and 2 * axis.pad_begin <= axis.kernel and fits == axis.out


@_of("MaxPool")
def _max_pool(t: Translation, node: Node) -> Any:
    x = t.value(node.inputs[0])
    axes = resolve(node, t.shape(node.inputs[0])[2:], tuple(node.attributes["kernel_shape"]))
    functions = {1: t.torch.max_pool1d, 2: t.torch.max_pool2d, 3: t.torch.max_pool3d}
    if len(axes) not in functions:
        raise Refused(f"it has {len(axes)} spatial axes, and 1 to 3 are supported")
    pads = tuple(axis.pad_begin for axis in axes)
    if not all(map(_plain, axes)):
        exact = [(a.out - 1) * a.stride + (a.kernel - 1) * a.dilation + 1 - a.size for a in axes]
        x = t.padded(
            x, [(a.pad_begin, end - a.pad_begin) for a, end in zip(axes, exact, strict=True)], -_INFINITY
        )
        pads = (0,) * len(axes)
    return t.call(
        functions[len(axes)],
        x,
        tuple(axis.kernel for axis in axes),
        tuple(axis.stride for axis in axes),
        pads,
        tuple(axis.dilation for axis in axes),
    )


@_of("AveragePool")
def _average_pool(t: Translation, node: Node) -> Any:
    axes = resolve(node, t.shape(node.inputs[0])[2:], tuple(node.attributes["kernel_shape"]))
    functions = {1: t.f.avg_pool1d, 2: t.f.avg_pool2d, 3: t.f.avg_pool3d}
    if len(axes) not in functions:
        raise Refused(f"it has {len(axes)} spatial axes, and 1 to 3 are supported")
    if not all(_plain(axis) and axis.dilation == 1 for axis in axes):
        raise Refused("its pads or windows are not such as PyTorch's average pooling has")
    return t.call(
        functions[len(axes)],
        t.value(node.inputs[0]),
        tuple(axis.kernel for axis in axes),
        tuple(axis.stride for axis in axes),
        tuple(axis.pad_begin for axis in axes),
        ceil_mode=False,
        count_include_pad=bool(node.attributes.get("count_include_pad", 0)),
    )


@_of("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(t: Translation, node: Node) -> Any:
    spatial = tuple(range(2, len(t.shape(node.inputs[0]))))
    function = t.torch.mean if node.op_type == "GlobalAveragePool" else t.torch.amax
    return t.call(function, t.value(node.inputs[0]), spatial, True)


@_of("LRN")
def _lrn(t: Translation, node: Node) -> Any:
    size = int(node.attributes["size"])
    if size % 2 == 0:
        raise Refused(f"its size {size} is even, whose window PyTorch lays one channel lower")
    return t.call(
        t.f.local_response_norm,
        t.value(node.inputs[0]),
        size,
        float(node.attributes.get("alpha", 1e-4)),
        float(node.attributes.get("beta", 0.75)),
        float(node.attributes.get("bias", 1.0)),
    )


@_of("Gemm")
def _gemm(t: Translation, node: Node) -> Any:
    a, b, c = t.value(node.inputs[0]), node.inputs[1], optional_input(node, 2)
    alpha, beta = (float(node.attributes.get(name, 1.0)) for name in ("alpha", "beta"))
    if node.attributes.get("transA", 0):
        a = t.call(t.torch.t, a)
    weight = t.value(b)
    if not node.attributes.get("transB", 0):
        # torch.nn.functional.linear wants (n, k): a constant is laid so once.
        matrix = t.scope.constants.get(b)
        weight = t.call(t.torch.t, weight) if matrix is None else t.constant(np.asarray(matrix).T)
    n = t.shape(node.outputs[0])[1]
    if alpha == 1.0 and (not c or (beta == 1.0 and t.shape(c) == (n,))):
        return t.call(t.f.linear, a, weight, t.value(c))
    y = t.call(operator.mul, t.call(t.f.linear, a, weight), alpha)
    return t.call(operator.add, y, t.call(operator.mul, t.value(c), beta)) if c else y


@_of("MatMul")
def _matmul(t: Translation, node: Node) -> Any:
    return t.call(t.torch.matmul, *t.inputs(node))


@_of("Softmax", "LogSoftmax")
def _softmax(t: Translation, node: Node) -> Any:
    function = t.f.softmax if node.op_type == "Softmax" else t.f.log_softmax
    x, shape = t.value(node.inputs[0]), t.shape(node.inputs[0])
    if t.scope.opset >= 13:
        return t.call(function, x, normal_axis(int(node.attributes.get("axis", -1)), len(shape)))
    axis = normal_axis(int(node.attributes.get("axis", 1)), len(shape), inclusive=True)
    if axis == len(shape) - 1:
        return t.call(function, x, axis)
    rows = t.call(t.torch.reshape, x, (math.prod(shape[:axis]), math.prod(shape[axis:])))
    return t.call(t.torch.reshape, t.call(function, rows, 1), shape)


@_of("BatchNormalization")
def _batch_norm(t: Translation, node: Node) -> Any:
    if node.attributes.get("training_mode", 0) or not node.attributes.get("spatial", 1):
        raise Refused("only inference with one value a channel is supported")
    x, scale, bias, mean, variance = t.inputs(node)
    epsilon = float(node.attributes.get("epsilon", 1e-5))
    return t.call(t.f.batch_norm, x, mean, variance, scale, bias, False, 0.0, epsilon)


@_of("InstanceNormalization")
def _instance_norm(t: Translation, node: Node) -> Any:
    x, scale, bias = t.inputs(node)
    epsilon = float(node.attributes.get("epsilon", 1e-5))
    return t.call(t.f.instance_norm, x, weight=scale, bias=bias, eps=epsilon)


@_of("LayerNormalization")
def _layer_norm(t: Translation, node: Node) -> Any:
    shape = t.shape(node.inputs[0])
    axis = normal_axis(int(node.attributes.get("axis", -1)), len(shape))
    scale, bias = t.value(node.inputs[1]), t.value(optional_input(node, 2))
    if any(t.shape(name) != shape[axis:] for name in node.inputs[1:] if name):
        raise Refused("its scale or bias broadcasts, which PyTorch's does not")
    epsilon = float(node.attributes.get("epsilon", 1e-5))
    return t.call(t.f.layer_norm, t.value(node.inputs[0]), shape[axis:], scale, bias, epsilon)


@_of("Flatten", "Reshape", "Squeeze", "Unsqueeze")
def _reshape(t: Translation, node: Node) -> Any:
    return t.call(t.torch.reshape, t.value(node.inputs[0]), t.shape(node.outputs[0]))


@_of("Identity", "Dropout")
def _same(t: Translation, node: Node) -> Any:
    return t.value(node.inputs[0])


@_of("Transpose")
def _transpose(t: Translation, node: Node) -> Any:
    rank = len(t.shape(node.inputs[0]))
    order = integers(node.attributes.get("perm"), tuple(reversed(range(rank))), "perm")
    return t.call(t.torch.permute, t.value(node.inputs[0]), order)


@_of("Concat")
def _concat(t: Translation, node: Node) -> Any:
    axis = normal_axis(int(node.attributes["axis"]), len(t.shape(node.outputs[0])))
    return t.call(t.torch.cat, t.inputs(node), axis)


@_of("Pad")
def _pad(t: Translation, node: Node) -> Any:
    if node.attributes.get("mode", "constant") not in ("constant", b"constant"):
        raise Refused("only constant padding is supported")
    rank, value = len(t.shape(node.inputs[0])), float(node.attributes.get("value", 0.0))
    pads = node.attributes.get("pads")
    if t.scope.opset >= 11:
        pads = t.scope.integers(node, 1, "pads")
        fill = t.scope.constant(node, 2, "value")
        value = float(fill.reshape(-1)[0]) if fill is not None else 0.0
        if optional_input(node, 3):
            raise Refused("its axes are given, which is not supported")
    listed = integers(pads, (0,) * 2 * rank, "pads")
    return t.padded(t.value(node.inputs[0]), list(zip(listed[:rank], listed[rank:], strict=True)), value)


@_of("Clip")
def _clip(t: Translation, node: Node) -> Any:
    bounds: list[float | None] = []
    for index, name in enumerate(("min", "max"), start=1):
        value = node.attributes.get(name)
        if t.scope.opset >= 11:
            bound = t.scope.constant(node, index, name)
            value = bound.reshape(-1)[0] if bound is not None else None
        bounds.append(None if value is None else float(value))
    x = t.value(node.inputs[0])
    return x if bounds == [None, None] else t.call(t.torch.clamp, x, *bounds)


@_of("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin")
def _reduce(t: Translation, node: Node) -> Any:
    rank = len(t.shape(node.inputs[0]))
    axes = node.attributes.get("axes")
    if axes is None and optional_input(node, 1):
        axes = t.scope.integers(node, 1, "axes")
    if not axes and node.attributes.get("noop_with_empty_axes", 0):
        return t.value(node.inputs[0])
    along = tuple(normal_axis(int(axis), rank) for axis in axes) if axes else tuple(range(rank))
    functions = {"Mean": t.torch.mean, "Sum": t.torch.sum, "Max": t.torch.amax, "Min": t.torch.amin}
    keep = bool(node.attributes.get("keepdims", 1))
    return t.call(functions[node.op_type.removeprefix("Reduce")], t.value(node.inputs[0]), along, keep)


@_of("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum")
def _binary(t: Translation, node: Node) -> Any:
    functions = {
        "Add": t.torch.add,
        "Sum": t.torch.add,
        "Sub": t.torch.sub,
        "Mul": t.torch.mul,
        "Div": t.torch.div,
        "Pow": t.torch.pow,
        "Max": t.torch.maximum,
        "Min": t.torch.minimum,
    }
    if node.op_type == "Div" and np.dtype(t.scope.spec(node.inputs[0]).dtype).kind != "f":
        raise Refused("it divides whole numbers")
    y, *others = t.inputs(node)
    for other in others:
        y = t.call(functions[node.op_type], y, other)
    return y


@_of("Cast")
def _cast(t: Translation, node: Node) -> Any:
    dtype = t.scope.spec(node.outputs[0]).dtype
    if np.dtype(dtype).kind == "f":
        dtype = t.held
    return t.call(t.torch.Tensor.to, t.value(node.inputs[0]), getattr(t.torch, dtype))


@_of("PRelu")
def _prelu(t: Translation, node: Node) -> Any:
    x, slope = t.inputs(node)
    return t.call(t.torch.where, t.call(operator.lt, x, 0), t.call(t.torch.mul, x, slope), x)


_UNARY = {
    **{name: name.lower() for name in ("Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Log", "Neg", "Relu")},
    **{name: name.lower() for name in ("Reciprocal", "Sigmoid", "Sin", "Sqrt", "Tanh", "Round", "Sign")},
}
_FUNCTIONAL = {"Mish": "mish", "Softplus": "softplus", "Softsign": "softsign", "HardSwish": "hardswish"}


@_of(*_UNARY)
def _unary(t: Translation, node: Node) -> Any:
    return t.call(getattr(t.torch, _UNARY[node.op_type]), t.value(node.inputs[0]))


@_of(*_FUNCTIONAL)
def _functional(t: Translation, node: Node) -> Any:
    return t.call(getattr(t.f, _FUNCTIONAL[node.op_type]), t.value(node.inputs[0]))


@_of("LeakyRelu", "Elu", "Celu")
def _sloped(t: Translation, node: Node) -> Any:
    functions = {"LeakyRelu": (t.f.leaky_relu, 0.01), "Elu": (t.f.elu, 1.0), "Celu": (t.f.celu, 1.0)}
    function, usual = functions[node.op_type]
    return t.call(function, t.value(node.inputs[0]), float(node.attributes.get("alpha", usual)))


@_of("HardSigmoid")
def _hard_sigmoid(t: Translation, node: Node) -> Any:
    alpha, beta = float(node.attributes.get("alpha", 0.2)), float(node.attributes.get("beta", 0.5))
    y = t.call(operator.add, t.call(operator.mul, t.value(node.inputs[0]), alpha), beta)
    return t.call(t.torch.clamp, y, 0.0, 1.0)


@_of("Gelu")
def _gelu(t: Translation, node: Node) -> Any:
    how = node.attributes.get("approximate", "none")
    return t.call(t.f.gelu, t.value(node.inputs[0]), approximate=how)
