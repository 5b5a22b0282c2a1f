"""A params record as an ONNX model of its own: what the oracle and the reference are given for one rung.

The operator is one node; an activation, and what a matrix product adds (alpha, beta, a bias), are nodes
behind it, as exporters write them. Inputs are in0, in1, … in the params' order, weights as initializers;
output y.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from engine.graph import importer
from engine.graph.graph import Graph
from engine.rung_session import WEIGHTS, data_inputs, input_shapes, output_shape
from kernels.params import (
    Binary,
    Cast,
    Conv,
    ConvPool,
    Gemm,
    Lrn,
    LrnPool,
    Pad,
    Params,
    Pool,
    Softmax,
    Transpose,
    Unary,
)

OPSET = 19
IR_VERSION = 9
UNARY = {"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid", "identity": "Identity"}
BINARY = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div"}
OUTPUT = "y"
_LARGE = np.float32(100)  # exp(89) is float32's infinity


def draw(p: Params, random: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Inputs of one check, weights among them: normal values (weights scaled so that outputs are of order 1),
    bounded away from 0 where they divide, whole numbers for whole-number types; where an exponential is
    taken, some of them so large that it overflows for whoever does not see to it."""
    arrays = []
    for i, shape in enumerate(input_shapes(p)):
        values = random.standard_normal(shape, np.float32)
        if isinstance(p, Conv | ConvPool | Gemm) and i == 1:
            depth = p.k if isinstance(p, Gemm) else p.c // p.group * p.kh * p.kw
            values /= np.sqrt(np.float32(depth))
        if isinstance(p, Softmax):
            values += _LARGE * random.standard_normal((p.outer, 1, p.inner), np.float32)
        elif isinstance(p, Unary) and np.dtype(p.dtype).kind == "f":
            values.reshape(-1)[3::4] *= _LARGE
        if isinstance(p, Binary) and p.kind == "div" and i == 1:
            values += np.copysign(np.float32(1), values)
        dtype = np.dtype(p.dtype)
        if dtype.kind in "iu":
            values = np.abs(8 * values) if dtype.kind == "u" or _to_unsigned(p) else 8 * values
        arrays.append(values > 0 if dtype.kind == "b" else values.astype(dtype))
    return tuple(arrays)


def _to_unsigned(p: Params) -> bool:
    return isinstance(p, Cast) and np.dtype(p.to).kind == "u"


def graph(p: Params, inputs: Sequence[np.ndarray]) -> Graph:
    """The model; `inputs` in the params' order, of which the weights become initializers."""
    names = [f"in{i}" for i in range(len(inputs))]
    weights = [i for i in WEIGHTS.get(p.op, ()) if i < len(inputs)]
    nodes, extra = _nodes(p, names)
    _activate(nodes, getattr(p, "activation", None))
    to = helper.np_dtype_to_tensor_dtype(np.dtype(getattr(p, "to", p.dtype)))
    element = helper.np_dtype_to_tensor_dtype(np.dtype(p.dtype))
    held = [onnx.numpy_helper.from_array(np.ascontiguousarray(inputs[i]), names[i]) for i in weights]
    held += [onnx.numpy_helper.from_array(array, name) for name, array in extra.items()]
    data = data_inputs(p, len(inputs))
    made = helper.make_graph(
        nodes,
        p.op,
        [helper.make_tensor_value_info(names[i], element, inputs[i].shape) for i in data],
        [helper.make_tensor_value_info(OUTPUT, to, output_shape(p))],
        held,
    )
    proto = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    digest = hashlib.sha256(repr(p).encode())
    for i in weights:
        digest.update(np.ascontiguousarray(inputs[i]).data)
    return importer.from_proto(proto, p.op, sha256=digest.hexdigest())


def _activate(nodes: list[Any], kind: str | None, linear: str = "linear", output: str = OUTPUT) -> None:
    """An activation behind the last of the nodes, whose output becomes `linear`; none for None."""
    if kind:
        nodes[-1].output[0] = linear
        nodes.append(_node(UNARY[kind], [linear], output))


def _nodes(p: Params, names: list[str]) -> tuple[list[Any], dict[str, np.ndarray]]:
    """The nodes of the operator itself, ending in y, and the constants that they read."""
    match p:
        case Conv():
            return [_conv(p, names)], {}
        case Pool():
            return [_pool(p, names)], {}
        case LrnPool():
            return [_lrn(p.lrn, names, "normal"), _pool(p.pool, ["normal"])], {}
        case ConvPool():
            nodes = [_conv(p.conv, names, "maps")]
            _activate(nodes, p.conv.activation, "sums", "maps")
            nodes.append(_pool(p.pool, ["maps"]))
            _activate(nodes, p.pool.activation)
            return nodes, {}
        case Gemm():
            return _gemm(p, names)
        case Lrn():
            return [_lrn(p, names)], {}
        case Softmax():
            return [_node("LogSoftmax" if p.log else "Softmax", names, axis=1)], {}
        case Unary():
            return [_node(UNARY[p.kind], names)], {}
        case Binary():
            whole = helper.make_node("Expand", ["part", "shape"], [OUTPUT], name="expand")
            return [_node(BINARY[p.kind], names, output="part"), whole], {
                "shape": np.array(p.shape, np.int64)
            }
        case Transpose():
            return [_node("Transpose", names, perm=p.perm)], {}
        case Pad():
            pads = np.array([*p.begin, *p.end], np.int64)
            return [_node("Pad", [*names, "pads", "value"], mode=p.mode)], {
                "pads": pads,
                "value": np.array(p.value, p.dtype),
            }
        case Cast():
            return [_node("Cast", names, to=helper.np_dtype_to_tensor_dtype(np.dtype(p.to)))], {}


def _conv(p: Conv, names: Sequence[str], output: str = OUTPUT) -> Any:
    return _node("Conv", names, output, group=p.group, **_window(p))


def _lrn(p: Lrn, names: Sequence[str], output: str = OUTPUT) -> Any:
    return _node("LRN", names, output, size=p.size, alpha=p.alpha, beta=p.beta, bias=p.bias)


def _pool(p: Pool, names: Sequence[str]) -> Any:
    window = _window(p)
    floors = [
        (size + before + after - (kernel - 1) * dilation - 1) // stride + 1
        for size, before, after, kernel, dilation, stride in (
            (p.h, p.pad_top, p.pad_bottom, p.kh, p.dilation_h, p.stride_h),
            (p.w, p.pad_left, p.pad_right, p.kw, p.dilation_w, p.stride_w),
        )
    ]
    window["ceil_mode"] = int(floors != [p.out_h, p.out_w])
    if p.kind == "max":
        return _node("MaxPool", names, **window)
    return _node("AveragePool", names, count_include_pad=int(p.count_include_pad), **window)


def _gemm(p: Gemm, names: list[str]) -> tuple[list[Any], dict[str, np.ndarray]]:
    """One Gemm node where that says it all; else Transpose, MatMul, Mul and Add."""
    dtype = np.dtype(p.dtype)
    if p.batch == 1:
        flat = [f"{name}_flat" for name in names[:2]]
        nodes = [
            helper.make_node("Reshape", [name, f"{to}_shape"], [to], name=to)
            for name, to in zip(names, flat, strict=False)
        ]
        shapes = input_shapes(p)
        extra = {f"{to}_shape": np.array(shapes[i][1:], np.int64) for i, to in enumerate(flat)}
        product = helper.make_node(
            "Gemm",
            [*flat, *names[2:]],
            ["product"],
            name="gemm",
            transA=int(p.trans_a),
            transB=int(p.trans_b),
            alpha=p.alpha,
            beta=p.beta,
        )
        back = helper.make_node("Reshape", ["product", "y_shape"], [OUTPUT], name="whole")
        return [*nodes, product, back], extra | {"y_shape": np.array(output_shape(p), np.int64)}
    nodes, sides = [], []
    for name, transposed in zip(names, (p.trans_a, p.trans_b), strict=False):
        if transposed:
            nodes.append(_node("Transpose", [name], output=f"{name}_t", perm=[0, 2, 1]))
        sides.append(f"{name}_t" if transposed else name)
    nodes.append(_node("MatMul", sides, output="product"))
    nodes.append(_node("Mul", ["product", "alpha"], output="scaled"))
    if p.bias:
        nodes.append(_node("Mul", [names[2], "beta"], output="shift"))
        nodes.append(_node("Add", ["scaled", "shift"], output="sum"))
    nodes.append(_node("Expand", ["sum" if p.bias else "scaled", "shape"]))
    shape = np.array(output_shape(p), np.int64)
    return nodes, {"alpha": np.array(p.alpha, dtype), "beta": np.array(p.beta, dtype), "shape": shape}


def _window(p: Conv | Pool) -> dict[str, Any]:
    return {
        "kernel_shape": [p.kh, p.kw],
        "strides": [p.stride_h, p.stride_w],
        "pads": [p.pad_top, p.pad_left, p.pad_bottom, p.pad_right],
        "dilations": [p.dilation_h, p.dilation_w],
    }


def _node(kind: str, inputs: Sequence[str], output: str = OUTPUT, **attributes: Any) -> Any:
    return helper.make_node(kind, list(inputs), [output], name=f"{kind.lower()}_{output}", **attributes)
