"""A model in which nodes are custom operators, exported from rungs (kernels.exported)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from engine.graph import initializers
from engine.graph.graph import Graph
from engine.planning.exported import Replacement

VERSION = 1  # of an operator's domain


def swapped(graph: Graph, replacements: Sequence[Replacement], batch_symbol: str = "N") -> Graph:
    """The model with each replacement's nodes as one custom operator, which keeps the first one's name.
    `nodes` stay as they were: the result is for ONNX Runtime, which takes `proto`. batch_symbol: what the
    batch is called in shapes that differ from one exported size to the next."""
    source = graph.proto.graph
    proto = onnx.ModelProto()
    proto.CopyFrom(graph.proto)
    arrays = dict(graph.initializers)
    added: dict[str, onnx.NodeProto] = {}  # by the node in whose place it stands
    gone: set[str] = set()
    digest = hashlib.sha256(graph.sha256.encode())
    for it in replacements:
        op = it.operator
        names: list[str] = []
        for given, name in zip(op.inputs, it.inputs, strict=True):
            if not name:
                assert given.array is not None
                name = f"{op.name}.{len(names)}"
                arrays[name] = given.array
                proto.graph.initializer.append(_initializer(name, given.array))
            names.append(name)
        added[it.nodes[-1]] = helper.make_node(
            op.name, names, [it.output], name=it.nodes[0], domain=op.domain
        )
        proto.opset_import.append(helper.make_opsetid(op.domain, VERSION))
        gone.update(it.nodes)
        digest.update(f"\0{op.name}\0{op.rung.source}\0{[size.shapes for size in op.sizes]}".encode())
        _declare(proto, it, batch_symbol)
    producers = {name: node.name for node in source.node for name in node.output}
    last = {producers[it.output]: added[it.nodes[-1]] for it in replacements}
    del proto.graph.node[:]
    for node in source.node:
        if node.name in last:
            proto.graph.node.append(last[node.name])
        elif node.name not in gone:
            proto.graph.node.append(node)
    _drop_unread(proto)
    return replace(graph, proto=proto, initializers=arrays, sha256=digest.hexdigest())


def _initializer(name: str, array: np.ndarray) -> onnx.TensorProto:
    if array.dtype.name in ("bfloat16",):
        return numpy_helper.from_array(array, name)
    return initializers.initializer(name, array)


def _declare(proto: onnx.ModelProto, it: Replacement, batch_symbol: str) -> None:
    """Say what type and shape the new node's output has: nobody can infer it."""
    shapes = [size.output for size in it.operator.sizes]
    dims = [sizes[0] if len(set(sizes)) == 1 else batch_symbol for sizes in zip(*shapes, strict=True)]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(it.operator.out_dtype))
    known = [value for value in proto.graph.value_info if value.name != it.output]
    del proto.graph.value_info[:]
    proto.graph.value_info.extend(known)
    if all(value.name != it.output for value in proto.graph.output):
        proto.graph.value_info.append(helper.make_tensor_value_info(it.output, kind, dims))


def _drop_unread(proto: onnx.ModelProto) -> None:
    """Weights that no node reads any more, and what is said of tensors that are gone."""
    read = {name for node in proto.graph.node for name in node.input}
    read |= {name for node in proto.graph.node for name in _of_subgraphs(node)}
    read |= {value.name for value in proto.graph.output}
    made = {name for node in proto.graph.node for name in node.output}
    kept = [tensor for tensor in proto.graph.initializer if tensor.name in read]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)
    said = [value for value in proto.graph.value_info if value.name in made]
    del proto.graph.value_info[:]
    proto.graph.value_info.extend(said)


def _of_subgraphs(node: onnx.NodeProto) -> list[str]:
    """What the graphs inside a node may read from around them."""
    found = []
    for attribute in node.attribute:
        for graph in [attribute.g] if attribute.HasField("g") else [*attribute.graphs]:
            for inner in graph.node:
                found += [*inner.input, *_of_subgraphs(inner)]
            found += [value.name for value in graph.output]
    return found


LARGEST_NBYTES = 2**31 - (1 << 20)  # of one file of Protocol Buffers, with room for the graph


def save(graph: Graph, path: Path) -> None:
    """Write the model; where it is too large for one file, its weights beside it (NAME.onnx.data)."""
    proto = graph.whole_proto()
    large = sum(array.nbytes for array in graph.initializers.values()) > LARGEST_NBYTES
    if large:  # else what an earlier copy had would stay in front of it
        path.with_name(f"{path.name}.data").unlink(missing_ok=True)
    onnx.save(proto, path, save_as_external_data=large, location=f"{path.name}.data" if large else None)
