"""Parts of a model as models of their own, for comparing and timing one layer at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx

from engine.graph.graph import Graph
from engine.graph.importer import from_proto, tensor_info
from engine.graph.initializers import initializer
from engine.graph.shapes import value_info
from engine.graph.skeleton import inferred
from engine.passes import known
from engine.planning.groups import outside
from kernels.errors import InputError, UnsupportedError
from kernels.nearest import did_you_mean

# The first IR version whose initializers need not be listed as graph inputs.
IR_VERSION = 4


def extract(graph: Graph, nodes: Sequence[str], batch: int) -> Graph:
    """The named nodes alone as a model at one batch size.

    Its inputs are the tensors that come from outside the nodes and depend on the graph's inputs, in order of
    first use, with every dimension fixed; its outputs are the tensors that something outside reads, or that
    nothing reads. Constants, folded ones included, are its initializers. It runs at its own `fixed_batch`.
    Raises InputError (no such node, batch size out of range) and UnsupportedError (a shape that is not
    known).
    """
    chosen = set(nodes)
    by_name = {node.name: node for node in graph.nodes}
    for name in nodes:
        if name not in by_name:
            raise InputError(f"model {graph.name!r} has no node {name!r}{did_you_mean(name, by_name)}")
    picked = [node for node in graph.nodes if node.name in chosen]
    scope = known(graph, batch)
    read_outside = {name for node in graph.nodes if node.name not in chosen for name in node.reads}
    read_outside |= {info.name for info in graph.outputs}
    read_inside = {name for node in picked for name in node.reads}
    outputs = [
        name
        for node in picked
        for name in node.outputs
        if name and (name in read_outside or name not in read_inside)
    ]
    # Optional outputs that nothing reads (a Dropout's mask) would only ask for work.
    outputs = [name for name in outputs if name in read_outside] or outputs
    inputs = outside(picked, scope.constants)
    missing = [name for name in (*inputs, *outputs) if name not in scope.specs]
    if missing:
        raise UnsupportedError(
            f"node {nodes[0]!r} of model {graph.name!r} cannot be taken out: the shape of tensor "
            f"{missing[0]!r} is not known at batch size {batch}"
        )
    made = {name for node in picked for name in node.outputs}
    constants = {
        name: np.asarray(scope.constants[name])
        for node in picked
        for name in node.reads
        if name in scope.constants and name not in made
    }
    protos = {each.name: each for each in graph.proto.graph.node}
    title = f"{graph.name}:{picked[0].name}"
    proto = onnx.ModelProto(ir_version=max(graph.proto.ir_version, IR_VERSION))
    proto.opset_import.extend(graph.proto.opset_import)
    proto.functions.extend(graph.proto.functions)
    proto.graph.name = title
    proto.graph.node.extend(protos[node.name] for node in picked)
    proto.graph.input.extend(value_info(name, scope.specs[name]) for name in inputs)
    proto.graph.output.extend(value_info(name, scope.specs[name]) for name in outputs)
    proto.graph.initializer.extend(initializer(name, array) for name, array in constants.items())
    digest = _digest(graph, "extract", str(batch), *(node.name for node in picked))
    return from_proto(proto, title, sha256=digest, values=constants)


def with_outputs(graph: Graph, names: Sequence[str]) -> Graph:
    """The whole model with these tensors as outputs too, after its own, in the order given.

    Raises InputError for a name that no node makes."""
    made = {name for node in graph.nodes for name in node.outputs if name}
    present = {info.name for info in graph.outputs}
    for name in names:
        if name not in made:
            raise InputError(f"model {graph.name!r} has no inner tensor {name!r}{did_you_mean(name, made)}")
    further = [name for name in dict.fromkeys(names) if name not in present]
    if not further:
        return graph
    types = {value.name: value for value in inferred(graph.proto, graph.name).value_info}
    # A tensor whose type cannot be told is declared by name alone, which ONNX Runtime completes.
    values = [types.get(name) or onnx.ValueInfoProto(name=name) for name in further]
    proto = onnx.ModelProto()
    proto.CopyFrom(graph.proto)
    proto.graph.output.extend(values)
    return replace(
        graph,
        outputs=(*graph.outputs, *(tensor_info(value) for value in values)),
        proto=proto,
        sha256=_digest(graph, "outputs", *further),
    )


def _digest(graph: Graph, *words: str) -> str:
    return hashlib.sha256("\0".join((graph.sha256, *words)).encode()).hexdigest()
