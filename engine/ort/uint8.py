"""A model that takes pixels as bytes and makes numbers of them itself, by rewriting it: a Cast and the affine
function in front; the best classes alone behind, if asked. So ONNX Runtime has no more to carry over the bus
than our engine has."""

from __future__ import annotations

import hashlib

import numpy as np
import onnx
from onnx import TensorProto, helper

from engine.end_to_end import PLACES, VALUES, Request
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.graph.initializers import initializer
from kernels.errors import UnsupportedError

_TOP_K = 11  # the opset from which the number is an input, and the order is told


def rewritten(graph: Graph, asked: Request) -> Graph:
    """With the input `asked.image` in uint8, and the answers that are asked for. Raises UnsupportedError."""
    proto = onnx.ModelProto()
    proto.CopyFrom(graph.proto)
    values = dict(graph.initializers)
    if asked.affine is not None:
        _takes_bytes(proto, asked, values)
    if asked.top_k:
        _answers_best(graph, proto, asked, values)
    key_parts = (graph.sha256, asked.image, asked.affine, asked.scores, asked.top_k)
    digest = hashlib.sha256("\0".join(map(str, key_parts)).encode())
    return from_proto(proto, graph.name, sha256=digest.hexdigest(), values=values)


def _takes_bytes(proto: onnx.ModelProto, asked: Request, values: dict[str, np.ndarray]) -> None:
    name, affine = asked.image, asked.affine
    assert affine is not None
    info = next(value for value in proto.graph.input if value.name == name)
    tensor = info.type.tensor_type
    shape = [dim.dim_value for dim in tensor.shape.dim]
    tensor.elem_type = TensorProto.UINT8
    steps = [("Cast", []), ("Mul", affine.factors)]
    steps += [("Add", affine.offsets)] if affine.shifts else []
    current, nodes = name, []
    for op, channels in steps:
        read, current = current, f"{name}:{op.lower()}"
        if op == "Cast":
            nodes.append(helper.make_node(op, [read], [current], f"{current}:node", to=TensorProto.FLOAT))
            continue
        constant = f"{current}:constant"
        values[constant] = affine.per_channel(channels, shape)
        proto.graph.initializer.append(initializer(constant, values[constant]))
        nodes.append(helper.make_node(op, [read, constant], [current], f"{current}:node"))
    for node in proto.graph.node:
        for index, read in enumerate(node.input):
            if read == name:
                node.input[index] = current
    own = list(proto.graph.node)
    del proto.graph.node[:]
    proto.graph.node.extend([*nodes, *own])
    if any(output.name == name for output in proto.graph.output):
        raise UnsupportedError(f"input {name} of model {proto.graph.name} is one of its outputs, too")


def _answers_best(
    graph: Graph, proto: onnx.ModelProto, asked: Request, values: dict[str, np.ndarray]
) -> None:
    opset = next((it.version for it in proto.opset_import if it.domain in ("", "ai.onnx")), 0)
    if opset < _TOP_K:
        raise UnsupportedError(
            f"model {graph.name} is of opset {opset}, in which the best classes cannot be asked for as they "
            f"are from {_TOP_K} on: leave --top-k away, or export it anew"
        )
    for name, array in (("top:count", [asked.top_k]), ("top:rows", [0, -1])):
        values[name] = np.array(array, np.int64)
        proto.graph.initializer.append(initializer(name, values[name]))
    rows = f"{asked.scores}:rows"
    proto.graph.node.append(helper.make_node("Reshape", [asked.scores, "top:rows"], [rows], "top:rows:node"))
    proto.graph.node.append(
        helper.make_node("TopK", [rows, "top:count"], [VALUES, PLACES], "top:node", axis=1)
    )
    batch = next(iter(graph.inputs)).shape[0]
    scored = next(it for it in proto.graph.output if it.name == asked.scores).type.tensor_type.elem_type
    del proto.graph.output[:]
    for name, kind in ((VALUES, scored), (PLACES, TensorProto.INT64)):
        proto.graph.output.append(helper.make_tensor_value_info(name, kind, [batch, asked.top_k]))
