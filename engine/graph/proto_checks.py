"""What a model file may not hold, looked at before anything of ONNX's own walks it.

ONNX's checker and shape inference go into a model-local function anew at each of its calls, and neither
stops nor says anything on the way: two calls of the function before, thirty functions deep, is a file of two
kilobytes and a check that never ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import onnx

from engine.graph.normal_form import captured
from kernels.errors import ModelError

# Nodes with every call of a model-local function written out; the largest nets have some tens of thousands.
MOST_NODES = 100_000
# Functions and subgraphs within each other. Protobuf itself gives up at 33 subgraphs.
DEEPEST = 32

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_Key = tuple[str, str, str]


def check_size(proto: onnx.ModelProto, where: str) -> None:
    """Raises ModelError where calls of model-local functions make too many nodes of the file's, or have no
    end."""
    _Sizes(proto, where).check()


class _Sizes:
    def __init__(self, proto: onnx.ModelProto, where: str) -> None:
        self.proto, self.where = proto, where
        self.functions = {(_domain(f.domain), f.name, f.overload): f for f in proto.functions}
        self.known: dict[_Key, tuple[int, int]] = {}
        self.open: set[_Key] = set()

    def check(self) -> None:
        for key in self.functions:
            self._function(key, 0)
        self._nodes(self.proto.graph.node, 0)

    def _function(self, key: _Key, depth: int) -> tuple[int, int]:
        """(nodes when written out, levels) of one function."""
        if key in self.open:
            raise ModelError(f"{self.where} has a function {key[1]!r} that calls itself, which ONNX forbids")
        if key not in self.known:
            self.open.add(key)
            self.known[key] = self._nodes(self.functions[key].node, depth)
            self.open.discard(key)
        return self.known[key]

    def _nodes(self, nodes: Iterable[onnx.NodeProto], depth: int) -> tuple[int, int]:
        self._check_depth(depth)
        total = deepest = 0
        for node in nodes:
            inner = []
            key = (_domain(node.domain), node.op_type, node.overload)
            if key in self.functions:
                inner.append(self._function(key, depth + 1))
            for attribute in node.attribute:
                if attribute.ref_attr_name and attribute.type in _GRAPHS:
                    # What a function is given to put in could be put in twice, and so on.
                    raise ModelError(
                        f"{self.where}, node {node.name or node.op_type!r}: a function that takes a graph as "
                        "its attribute is not supported; inline the model's functions"
                    )
                inner.extend(self._nodes(graph.node, depth + 1) for graph in _graphs(attribute))
            total += 1 + sum(size for size, _ in inner)
            deepest = max([deepest, *(1 + levels for _, levels in inner)])
            self._check_depth(depth + deepest)
            if total > MOST_NODES:
                raise ModelError(
                    f"{self.where} has more than {MOST_NODES:,} nodes when its functions and subgraphs are "
                    "written out; a model of fewer is needed"
                )
        return total, deepest

    def _check_depth(self, depth: int) -> None:
        if depth > DEEPEST:
            raise ModelError(
                f"{self.where} has functions or subgraphs more than {DEEPEST} deep within each other; "
                "inline its functions"
            )


def check_wiring(proto: onnx.ModelProto, where: str) -> None:
    """Raises ModelError where a node or an output of the graph reads what nothing makes, or two nodes make
    the same: no backend could run that. Nodes come in an order in which they can run."""
    there = {value.name for value in proto.graph.input} | {tensor.name for tensor in proto.graph.initializer}
    broken = f"{where} is not a valid ONNX model: "
    written: set[str] = set()
    for node in proto.graph.node:
        for name in (*node.input, *captured(node)):
            if name and name not in there:
                raise ModelError(f"{broken}node {node.name!r} reads {name!r}, which nothing makes")
        for name in filter(None, node.output):
            if name in written:
                raise ModelError(f"{broken}two nodes make {name!r}, the second is {node.name!r}")
            written.add(name)
            there.add(name)
    for value in proto.graph.output:
        if value.name not in there:
            raise ModelError(f"{broken}it gives out {value.name!r}, which nothing makes")


def check_names(proto: onnx.ModelProto, where: str) -> None:
    """Raises ModelError for a name that no line of text can show, since every answer says names, and
    for an output that is given out twice."""
    for what, name in _names(proto):
        # Protobuf gives the bytes of a text that is not UTF-8.
        if isinstance(name, bytes):
            raise ModelError(f"{where} has {what} {name!r} that is not UTF-8; rename it")
        if _CONTROL.search(name):
            raise ModelError(f"{where} has {what} {name!r} that holds control characters; rename it")
    for text in (proto.doc_string, proto.graph.doc_string):
        if isinstance(text, bytes):
            raise ModelError(f"{where} has a description that is not UTF-8; export it again without one")
    seen: set[str] = set()
    for value in proto.graph.output:
        if value.name in seen:
            raise ModelError(f"{where} gives out its output {value.name!r} twice; name it once")
        seen.add(value.name)


_Named = tuple[str, str | bytes]


def _names(proto: onnx.ModelProto) -> Iterator[_Named]:
    """Every name of the model and what it is the name of."""
    yield from (("an operator set", entry.domain) for entry in proto.opset_import)
    yield "a producer", proto.producer_name
    yield from (("a version", text) for text in (proto.producer_version, proto.domain))
    for function in proto.functions:
        yield from (("a function", text) for text in (function.name, function.domain, function.overload))
        yield from (("a function's attribute", text) for text in function.attribute)
        yield from (("a tensor", text) for text in (*function.input, *function.output))
        yield from (("a function's operator set", entry.domain) for entry in function.opset_import)
    yield from _graph_names(proto.graph)
    for nodes in _node_lists(proto):
        for node in nodes:
            yield "a node", node.name
            yield from (("an operator", text) for text in (node.op_type, node.domain, node.overload))
            yield from (("a tensor", text) for text in (*node.input, *node.output))
            for attribute in node.attribute:
                yield from (("an attribute", text) for text in (attribute.name, attribute.ref_attr_name))
                for graph in _graphs(attribute):
                    yield from _graph_names(graph)


def _graph_names(graph: onnx.GraphProto) -> Iterator[_Named]:
    yield "a graph", graph.name
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield "a tensor", value.name
        yield from (("a dimension", dim.dim_param) for dim in value.type.tensor_type.shape.dim)
    for tensor in graph.initializer:
        yield "a tensor", tensor.name
        for entry in tensor.external_data:
            yield from (("a file of weights", text) for text in (entry.key, entry.value))


def _node_lists(proto: onnx.ModelProto) -> Iterator[Iterable[onnx.NodeProto]]:
    """The nodes of the graph and of each function and subgraph."""
    waiting: list[Iterable[onnx.NodeProto]] = [proto.graph.node, *(f.node for f in proto.functions)]
    while waiting:
        nodes = waiting.pop()
        yield nodes
        for node in nodes:
            waiting.extend(graph.node for attribute in node.attribute for graph in _graphs(attribute))


def _graphs(attribute: onnx.AttributeProto) -> list[onnx.GraphProto]:
    return [*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs]


_GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain
