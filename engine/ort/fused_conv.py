"""Conv with what follows it as one node, com.microsoft.FusedConv, for ONNX Runtime.

Conv → Relu and Conv → Add → Relu become one call of cuDNN, with the convolution algorithms that this call
has; ONNX Runtime's own optimiser does not do so for its CUDA provider.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import onnx

from engine.graph.graph import Graph
from engine.graph.skeleton import inferred

DOMAIN = "com.microsoft"
ACTIVATION = "Relu"  # the only one that the CUDA provider takes

Shapes = Mapping[str, tuple[int | str, ...]]


def fused(graph: Graph) -> Graph:
    """The model with every Conv that a Relu follows, perhaps after an Add of a tensor of the same shape, as
    one FusedConv that keeps the Conv's name; `graph` itself where there is none. `nodes` stay as they were:
    the result is for ONNX Runtime, which takes `proto`."""
    source = graph.proto.graph
    readers = Counter(name for node in source.node for name in node.input)
    readers.update(value.name for value in source.output)
    only_reader = {name: node for node in source.node for name in node.input if readers[name] == 1}
    places = {node.output[0]: place for place, node in enumerate(source.node) if node.output}
    shapes = _shapes(graph.proto) if any(node.op_type == "Add" for node in source.node) else {}
    fused_nodes: dict[int, onnx.NodeProto] = {}  # by the place of the Relu, where all its inputs are there
    gone: set[int] = set()
    for conv in source.node:
        if conv.op_type != "Conv" or conv.domain not in ("", "ai.onnx"):
            continue
        replaced, added = [conv], ""
        follower = only_reader.get(conv.output[0])
        if follower is not None and follower.op_type == "Add":
            added = _beside(follower, conv.output[0], shapes)
            replaced.append(follower)
            follower = only_reader.get(follower.output[0]) if added else None
        if follower is None or follower.op_type != ACTIVATION or places[follower.output[0]] in fused_nodes:
            continue
        node = onnx.NodeProto()
        node.CopyFrom(conv)
        node.op_type, node.domain = "FusedConv", DOMAIN
        node.output[0] = follower.output[0]
        node.attribute.append(onnx.helper.make_attribute("activation", ACTIVATION))
        if added:
            node.input.extend([""] * (3 - len(node.input)))
            node.input.append(added)
        fused_nodes[places[follower.output[0]]] = node
        gone |= {places[old.output[0]] for old in replaced}
    if not fused_nodes:
        return graph
    proto = onnx.ModelProto()
    proto.CopyFrom(graph.proto)
    del proto.graph.node[:]
    proto.graph.node.extend(
        fused_nodes.get(place, node) for place, node in enumerate(source.node) if place not in gone
    )
    if all(entry.domain != DOMAIN for entry in proto.opset_import):
        proto.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    digest = hashlib.sha256(f"{graph.sha256}\0fused_conv".encode()).hexdigest()
    return replace(graph, proto=proto, sha256=digest)


def _beside(add: onnx.NodeProto, tensor: str, shapes: Shapes) -> str:
    """What an Add adds to `tensor`, if it is known to be of the same shape: FusedConv does not broadcast."""
    other = next((name for name in add.input if name != tensor), "")
    return other if other in shapes and shapes[other] == shapes.get(tensor) else ""


def _shapes(proto: onnx.ModelProto) -> Shapes:
    """Shapes by tensor, as far as every dimension has a number or a symbol."""
    graph = inferred(proto, proto.graph.name)
    shapes = {}
    for value in (*graph.input, *graph.output, *graph.value_info):
        dims = [
            dim.dim_value if dim.HasField("dim_value") else dim.dim_param
            for dim in value.type.tensor_type.shape.dim
        ]
        if dims and "" not in dims:
            shapes[value.name] = tuple(dims)
    return shapes
