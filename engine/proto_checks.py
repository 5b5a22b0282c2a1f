"""What a model file may not hold, looked at before anything of ONNX's own walks it.

ONNX's checker and shape inference go into a model-local function anew at each of its calls, and neither
stops nor says anything on the way: two calls of the function before, thirty functions deep, is a file of two
kilobytes and a check that never ends.
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from kernels.errors import ModelError

# Nodes with every call of a model-local function written out; the largest nets have some tens of thousands.
MOST_NODES = 100_000
# Functions and subgraphs within each other. Protobuf itself gives up at 33 subgraphs.
DEEPEST = 32

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
                graphs = [*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs]
                inner.extend(self._nodes(graph.node, depth + 1) for graph in graphs)
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


_GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain
