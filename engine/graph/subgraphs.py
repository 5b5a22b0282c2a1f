"""Graphs that are attributes of nodes (of If, Loop, Scan) under other names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx

from engine.graph.normal_form import captured


def graphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs that are this node's attributes."""
    return [
        graph
        for attribute in node.attribute
        for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs)
    ]


def renamed(graph: onnx.GraphProto, names: Mapping[str, str]) -> onnx.GraphProto:
    """The graph with what it takes from around it under these names; its own tensors stand aside where one of
    them is called so."""
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {name for node in graph.node for name in node.output if name}
    read = {name for node in graph.node for name in (*node.input, *captured(node))}
    read |= {value.name for value in graph.output}
    wanted = {name: names[name] for name in read - own if name in names}
    wanted |= {name: f"{name}:own" for name in own & set(wanted.values())}
    copy = onnx.GraphProto()
    copy.CopyFrom(graph)
    if all(name == other for name, other in wanted.items()):
        return copy
    for node in copy.node:
        _rename(node.input, wanted)
        _rename(node.output, wanted)
        for inner in graphs(node):
            inner.CopyFrom(renamed(inner, wanted))
    for held in (*copy.input, *copy.output, *copy.value_info, *copy.initializer):
        held.name = wanted.get(held.name, held.name)
    return copy


def _rename(field: Iterable[str], names: Mapping[str, str]) -> None:
    for index, name in enumerate(list(field)):
        field[index] = names.get(name, name)  # type: ignore[index]
