"""Parts of a model as models, for comparing and timing one layer at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import onnx

from engine.graph.graph import Graph
from engine.graph.importer import from_proto, tensor_info
from engine.graph.initializers import initializer
from engine.graph.normal_form import rename
from engine.graph.shapes import value_info
from engine.graph.skeleton import inferred
from engine.passes import known
from engine.planning.groups import outside
from kernels.errors import InputError, UnsupportedError
from kernels.nearest import did_you_mean

# The first IR version whose initializers need not be listed as graph inputs.
IR_VERSION = 4
_NO: frozenset[str] = frozenset()


def extract(graph: Graph, nodes: Sequence[str], batch: int) -> Graph:
    """The named nodes alone as a model at one batch size.

    Its inputs are the tensors that come from outside the nodes and depend on the graph's inputs, in order of
    first use, with every dimension fixed; its outputs are the tensors that something outside reads, or that
    nothing reads. Constants, folded ones included, are its initializers. It runs at its own `fixed_batch`.
    Raises InputError (no such node, batch size out of range) and UnsupportedError (a shape that is not
    known).
    """
    part = _taken(graph, nodes, batch)
    proto = _empty(graph, f"{graph.name}:{part.nodes[0].name}")
    proto.graph.node.extend(part.nodes)
    proto.graph.input.extend(part.inputs)
    proto.graph.output.extend(part.outputs)
    proto.graph.initializer.extend(initializer(name, array) for name, array in part.constants.items())
    digest = _digest(graph, "extract", str(batch), *(node.name for node in part.nodes))
    return from_proto(proto, proto.graph.name, sha256=digest, values=part.constants)


class _Taken(NamedTuple):
    """The part of a model that some nodes are: the nodes, their inputs and outputs, their constants."""

    nodes: list[onnx.NodeProto]
    inputs: list[onnx.ValueInfoProto]
    outputs: list[onnx.ValueInfoProto]
    constants: dict[str, np.ndarray]


def _taken(graph: Graph, nodes: Sequence[str], batch: int) -> _Taken:
    """Raises as `extract` does."""
    chosen = set(nodes)
    for name in nodes:
        if name not in graph.by_name:
            raise InputError(f"model {graph.name!r} has no node {name!r}{did_you_mean(name, graph.by_name)}")
    # In the graph's order, without a walk over all of it: parts of long models are taken out by thousands.
    picked = sorted((graph.by_name[name] for name in chosen), key=lambda node: graph.order[node.name])
    scope = known(graph, batch)
    outputs_inside = dict.fromkeys(name for node in picked for name in node.outputs if name)
    read_outside = {
        name
        for name in outputs_inside
        if name in graph.given_out or not graph.readers.get(name, _NO) <= chosen
    }
    read_inside = {name for node in picked for name in node.reads}
    outputs = [name for name in outputs_inside if name in read_outside or name not in read_inside]
    # Optional outputs that nothing reads (a Dropout's mask) would only ask for work.
    outputs = [name for name in outputs if name in read_outside] or outputs
    inputs = outside(picked, scope.constants)
    missing = [name for name in (*inputs, *outputs) if name not in scope.specs]
    if missing:
        raise UnsupportedError(
            f"node {nodes[0]!r} of model {graph.name!r} cannot be taken out: the shape of tensor "
            f"{missing[0]!r} is not known at batch size {batch}"
        )
    return _Taken(
        [graph.node_protos[node.name] for node in picked],
        [value_info(name, scope.specs[name]) for name in inputs],
        [value_info(name, scope.specs[name]) for name in outputs],
        {
            name: np.asarray(scope.constants[name])
            for node in picked
            for name in node.reads
            if name in scope.constants and name not in outputs_inside
        },
    )


def _empty(graph: Graph, title: str) -> onnx.ModelProto:
    """A model without nodes, with the same operator sets and functions."""
    proto = onnx.ModelProto(ir_version=max(graph.proto.ir_version, IR_VERSION))
    proto.opset_import.extend(graph.proto.opset_import)
    proto.functions.extend(graph.proto.functions)
    proto.graph.name = title
    return proto


@dataclass(frozen=True)
class SeparateParts:
    """Groups of nodes as one model of separate parts, each with inputs of its own. fed: by input of `graph`,
    the tensor of the original model that it stands for; another group may write that tensor."""

    graph: Graph
    fed: Mapping[str, str]


def side_by_side(graph: Graph, parts: Sequence[Sequence[str]], batch: int) -> SeparateParts:
    """What `extract` gives for each of these groups of nodes, as one model: one session computes all of them,
    and none reads the output of another. Raises as `extract` does."""
    models = [_taken(graph, nodes, batch) for nodes in parts]
    outputs_inside = {name for each in models for node in each.nodes for name in node.output}
    names: dict[str, str] = {}
    inputs: dict[str, onnx.ValueInfoProto] = {}
    for value in (value for each in models for value in each.inputs):
        inputs.setdefault(value.name, value)
    for name in inputs:
        names[name] = name
        while names[name] in outputs_inside or (names[name] != name and names[name] in inputs):
            names[name] += ":fed"
    proto = _empty(graph, f"{graph.name}:{parts[0][0]}" + f" and {len(parts) - 1} more" * (len(parts) > 1))
    constants: dict[str, np.ndarray] = {}
    for each in models:
        read = {value.name: names[value.name] for value in each.inputs}
        for node in each.nodes:
            proto.graph.node.append(node)
            rename(proto.graph.node[-1], read)
        proto.graph.output.extend(each.outputs)
        constants |= each.constants
    for name, value in inputs.items():
        value.name = names[name]
        proto.graph.input.append(value)
    proto.graph.initializer.extend(initializer(name, array) for name, array in constants.items())
    words = ["side by side", str(batch), *(node for nodes in parts for node in (*nodes, ""))]
    combined = from_proto(proto, proto.graph.name, sha256=_digest(graph, *words), values=constants)
    return SeparateParts(combined, {new: name for name, new in names.items()})


def with_outputs(graph: Graph, names: Sequence[str]) -> Graph:
    """The whole model, with these tensors as further outputs, in the given order. Raises InputError for a
    name that no node writes."""
    known_outputs = {name for node in graph.nodes for name in node.outputs if name}
    present = {info.name for info in graph.outputs}
    for name in names:
        if name not in known_outputs:
            raise InputError(
                f"model {graph.name!r} has no inner tensor {name!r}{did_you_mean(name, known_outputs)}"
            )
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
