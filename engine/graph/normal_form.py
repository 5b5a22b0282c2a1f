"""A model's proto in the one form that everything behind the importer expects.

Exporters leave freedom that ONNX's own tools do not take: the standard domain by its long name, nodes in any
order (keras2onnx and ONNX Runtime's float16 converter write them so), initializers that IR 3 wanted among the
inputs. None of it changes what a model means.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

import onnx

from kernels.errors import ModelError

LONG_NAME = "ai.onnx"
# The first IR version whose initializers need not be among the graph's inputs.
FREE_INITIALIZERS = 4


def normalise(proto: onnx.ModelProto, where: str) -> None:
    """Change `proto` (a copy of the caller's) into that form.

    Raises ModelError for nodes that read each other's outputs in a circle."""
    _short_domain(proto)
    inputs = {value.name for value in proto.graph.input}
    if any(tensor.name not in inputs for tensor in proto.graph.initializer):
        proto.ir_version = max(proto.ir_version, FREE_INITIALIZERS)
    order = _order(proto.graph.node, where)
    if order is not None:
        nodes = [proto.graph.node[index] for index in order]
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del proto.graph.node[:]
        proto.graph.node.extend(copies)


def _short_domain(proto: onnx.ModelProto) -> None:
    """ "" wherever the standard domain has its long name, said once where it is said under both."""
    for holder in (proto, *proto.functions):
        said = {entry.domain for entry in holder.opset_import}
        if LONG_NAME in said:
            kept = [e for e in holder.opset_import if e.domain != LONG_NAME or "" not in said]
            copies = [onnx.OperatorSetIdProto(domain=e.domain, version=e.version) for e in kept]
            del holder.opset_import[:]
            holder.opset_import.extend(copies)
        for entry in holder.opset_import:
            if entry.domain == LONG_NAME:
                entry.domain = ""
    for node in every_node(proto):
        if node.domain == LONG_NAME:
            node.domain = ""


def every_node(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """The nodes of the graph, of its functions, and of the graphs within them."""
    waiting = [*proto.graph.node, *(node for function in proto.functions for node in function.node)]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(_inner(node))


def _inner(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """The nodes of the graphs that are this node's attributes."""
    return [
        inner
        for attribute in node.attribute
        for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs)
        for inner in graph.node
    ]


def captured(node: onnx.NodeProto) -> tuple[str, ...]:
    """The tensors that the graphs within a node (the branches of an If, the body of a Scan) read from around
    it, in order of first use. A name that such a graph makes itself is its own, whatever has the same name
    around it."""
    found: dict[str, None] = {}
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
            found |= dict.fromkeys(_taken(graph))
    return tuple(found)


def _taken(graph: onnx.GraphProto) -> list[str]:
    """What a graph within a node takes from around it."""
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {tensor.values.name for tensor in graph.sparse_initializer}
    own |= {name for node in graph.node for name in node.output}
    read = [name for node in graph.node for name in (*node.input, *captured(node))]
    read += [value.name for value in graph.output]
    return [name for name in read if name and name not in own]


def _reads(node: onnx.NodeProto) -> set[str]:
    """What a node reads, that which its graphs take from around them included."""
    return {*node.input, *captured(node)}


def _order(nodes: Iterable[onnx.NodeProto], where: str) -> list[int] | None:
    """The nodes' indices so that each comes behind what it reads, else as they were; None where they do so
    already."""
    listed = list(nodes)
    maker = {name: i for i, node in reversed(list(enumerate(listed))) for name in node.output if name}
    before = [{maker[name] for name in _reads(node) if name in maker} for node in listed]
    if all(max(made, default=-1) < index for index, made in enumerate(before)):
        return None
    readers: list[list[int]] = [[] for _ in listed]
    missing = [len(made) for made in before]
    for index, made in enumerate(before):
        for other in made:
            readers[other].append(index)
    ready = [index for index, count in enumerate(missing) if not count]
    order = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for reader in readers[index]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, reader)
    if len(order) < len(listed):
        stuck = next(node for index, node in enumerate(listed) if missing[index])
        raise ModelError(
            f"{where}, node {stuck.name or stuck.op_type!r}: it reads what is made from its own output; a "
            "model's nodes must not go in a circle"
        )
    return order
