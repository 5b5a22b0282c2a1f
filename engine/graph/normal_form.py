"""A model's proto in the one form that everything behind the importer expects.

Exporters leave freedom that ONNX's own tools do not take: the standard domain by its long name, nodes in any
order (keras2onnx and ONNX Runtime's float16 converter write them so), initializers that IR 3 wanted among the
inputs, operator sets that are not named, a Scan whose body calls a tensor what the graph around it calls
another (CNTK's exporter). None of it changes what a model means.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Iterable, Iterator, Mapping, Set

import onnx

from kernels.errors import ModelError

LONG_NAME = "ai.onnx"
# The first IR version whose initializers need not be among the graph's inputs.
FREE_INITIALIZERS = 4


def normalise(proto: onnx.ModelProto, where: str) -> None:
    """Change `proto` (a copy of the caller's) into that form.

    Raises ModelError for nodes that read each other's outputs in a circle."""
    _short_domain(proto)
    _import_all(proto)
    _own_names(proto.graph)
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
        domains = {entry.domain for entry in holder.opset_import}
        if LONG_NAME in domains:
            entries = [e for e in holder.opset_import if e.domain != LONG_NAME or "" not in domains]
            copies = [onnx.OperatorSetIdProto(domain=e.domain, version=e.version) for e in entries]
            del holder.opset_import[:]
            holder.opset_import.extend(copies)
        for entry in holder.opset_import:
            if entry.domain == LONG_NAME:
                entry.domain = ""
    for node in every_node(proto):
        if node.domain == LONG_NAME:
            node.domain = ""


def _import_all(proto: onnx.ModelProto) -> None:
    """Say of which version the operator sets are that nodes are of and the file does not name: the newest one
    that ONNX knows, as ONNX Runtime takes them, and 1 of others."""
    domains = {entry.domain for entry in proto.opset_import}
    for domain in dict.fromkeys(node.domain for node in every_node(proto)):
        if domain and domain not in domains and proto.opset_import:
            version = _newest(domain)
            proto.opset_import.append(onnx.helper.make_opsetid(domain, version))
    if not proto.opset_import:
        proto.opset_import.append(onnx.helper.make_opsetid("", 1))


@functools.cache
def _newest(domain: str) -> int:
    schemas = onnx.defs.get_all_schemas_with_history()
    return max((schema.since_version for schema in schemas if schema.domain == domain), default=1)


def every_node(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """The nodes of the graph, of its functions, and of the graphs within them."""
    waiting = [*proto.graph.node, *(node for function in proto.functions for node in function.node)]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(_inner(node))


def _inner(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """The nodes of the graphs that are this node's attributes."""
    return [inner for graph in graphs(node) for inner in graph.node]


def _own_names(graph: onnx.GraphProto) -> None:
    """Give what graphs within nodes make names of its own, where the graph around them has the same ones:
    ONNX's inference takes the two for one."""
    holders = [node for node in graph.node if graphs(node)]
    if holders:
        names_in_use = set(_made(graph))
        for node in holders:
            for inner in graphs(node):
                _rename(inner, names_in_use, {})


def renamed(graph: onnx.GraphProto, names: Mapping[str, str]) -> onnx.GraphProto:
    """A copy of a graph within a node, with what it takes from around it under these names; its own tensors
    have others where one of them is called so."""
    copy = onnx.GraphProto()
    copy.CopyFrom(graph)
    _rename(copy, set(names.values()), names)
    return copy


def rename(node: onnx.NodeProto, names: Mapping[str, str], taken: Set[str] = frozenset()) -> None:
    """Have a node, and the graphs within it, call these tensors of the graph that it stands in otherwise.
    taken: what else is called so there."""
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    for inner in graphs(node):
        _rename(inner, taken | set(names.values()), names)


def _rename(graph: onnx.GraphProto, taken: Set[str], names: Mapping[str, str]) -> None:
    """taken: what the graphs around call theirs; names: what of it has another name now."""
    own = _made(graph)
    names = {old: new for old, new in names.items() if old not in own}
    for name in own:
        if name in taken:
            new = f"{name}_within"
            while new in taken or new in own:
                new += "_"
            names[name] = new
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = names.get(value.name, value.name)
    for sparse in graph.sparse_initializer:
        sparse.values.name = names.get(sparse.values.name, sparse.values.name)
    within = taken | {names.get(name, name) for name in own}
    for node in graph.node:
        rename(node, names, within)


def _made(graph: onnx.GraphProto) -> dict[str, None]:
    """The tensors that a graph is given, holds or makes, in order."""
    names = [value.name for value in graph.input] + [tensor.name for tensor in graph.initializer]
    names += [tensor.values.name for tensor in graph.sparse_initializer]
    names += [name for node in graph.node for name in node.output]
    return dict.fromkeys(filter(None, names))


def graphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs that are this node's attributes."""
    return [
        graph
        for attribute in node.attribute
        for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs)
    ]


def captured(node: onnx.NodeProto) -> tuple[str, ...]:
    """The tensors that the graphs within a node (the branches of an If, the body of a Scan) read from around
    it, in order of first use. A name that such a graph makes itself is its own, whatever has the same name
    around it."""
    return tuple(dict.fromkeys(name for graph in graphs(node) for name in _taken(graph)))


def _taken(graph: onnx.GraphProto) -> list[str]:
    """What a graph within a node takes from around it."""
    own = _made(graph)
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
    if all(max(positions, default=-1) < index for index, positions in enumerate(before)):
        return None
    readers: list[list[int]] = [[] for _ in listed]
    missing = [len(positions) for positions in before]
    for index, positions in enumerate(before):
        for other in positions:
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
