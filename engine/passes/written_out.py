"""Nodes that stand for other nodes: calls of a model's own functions, and operators that ONNX defines as
functions of others.

They are written out: their nodes are lowered one by one, under names of their own, and what comes of it is
what the one node becomes (`Writing`). So are If, Loop and Scan (engine.passes.control).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from engine.graph.graph import Graph, Node
from engine.graph.importer import constant, read_node
from engine.graph.normal_form import captured, graphs, renamed
from engine.graph.plan import TensorSpec
from engine.graph.shapes import value_info
from engine.ops import DEFAULT_DOMAINS, Kernel, Lowered, Refused, Scope, View
from kernels.errors import UnsupportedError

# Nodes that one node may stand for: each is a step of the plan at least.
MOST_NODES = 20_000
# Functions and graphs within each other.
DEEPEST = 32

Advance = Callable[[Node, Scope, Graph], Lowered | None]
"""Folds or lowers one node, and writes what it gives into the scope (engine.passes.trace)."""


def own(node: Node, scope: Scope, graph: Graph, advance: Advance) -> Lowered | None:
    """A call of a function of the model's own, written out; None for any other node.

    Raises UnsupportedError."""
    function = graph.functions.get((node.domain, node.op_type, node.overload))
    if function is None:
        return None
    return guarded(node, lambda: _called(node, function, {}, scope, graph, advance))


def defined(node: Node, scope: Scope, graph: Graph, advance: Advance) -> Lowered | None:
    """An operator by the function that ONNX defines it as, written out; None where there is none.

    Raises UnsupportedError for a node of that function that the engine does not take."""
    model_function = _standard_function(node, scope, graph)
    if model_function is None:
        return None
    function, defaults = model_function
    return guarded(node, lambda: _called(node, function, defaults, scope, graph, advance))


def guarded(node: Node, write: Callable[[], Lowered]) -> Lowered:
    try:
        return write()
    except Refused as error:
        raise UnsupportedError(f"node {node.name!r} ({node.op_type}): {error}") from None


# ------------------------------------------------------------------------------------------------ writing out


@dataclass
class Writing:
    """What is written so far of one node. prefix: of the names of its inner tensors. names: of its nodes.
    held: by a graph within it, what its initializers are called, which are the same in each turn."""

    node: Node
    scope: Scope
    graph: Graph
    advance: Advance
    items: list[Kernel | View] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    held: dict[int, dict[str, str]] = field(default_factory=dict)
    written: int = 0

    @property
    def prefix(self) -> str:
        return f"{self.node.name or self.node.outputs[0]}:"

    def nodes(
        self,
        protos: Iterable[onnx.NodeProto],
        names: dict[str, str],
        prefix: str,
        scope: Scope | None = None,
        graph: Graph | None = None,
        ends: Sequence[str] = (),
    ) -> None:
        """These nodes, in order. names: what their tensors are called outside, which is completed by what
        they make; what else they read is called outside as it is within. ends: what of it is read outside."""
        scope, graph = scope or self.scope, graph or self.graph
        if prefix.count(":") > 2 * DEEPEST:
            raise Refused(f"graphs or functions lie more than {DEEPEST} deep within each other")
        listed = list(protos)
        for name in (name for inner_name in listed for name in inner_name.output if name):
            names.setdefault(name, prefix + name)
        inputs = [name for inner_name in listed for name in (*inner_name.input, *captured(inner_name))]
        read = {names.get(name, name) for name in (*inputs, *ends)}
        inner = replace(scope, consumed=frozenset(read | set(self.node.outputs) & self.scope.consumed))
        self.written += max(1, len(listed))  # a turn without nodes is one, too: it may never be the last
        if self.written > MOST_NODES:
            raise Refused(
                f"it stands for more than {MOST_NODES:,} nodes when it is written out; fewer turns, or "
                "shorter sequences, would work"
            )
        for index, inner_name in enumerate(listed):
            name = f"{prefix}{inner_name.name or index}"
            while name in self.names:  # nodes of a function, or of a graph within a node, may be called alike
                name = f"{name}#{index}"
            self.names.add(name)
            self._one(inner_name, name, names, inner, graph)

    def _one(
        self, made: onnx.NodeProto, name: str, names: Mapping[str, str], scope: Scope, graph: Graph
    ) -> None:
        where = f"node {self.node.name!r}"
        node = read_node(made, where)
        outputs = tuple(names.get(output, output) for output in node.outputs)
        if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS:
            self.constant(outputs[0], constant(node, where), scope)
            return
        attributes = {
            key: renamed(value, names) if isinstance(value, onnx.GraphProto) else value
            for key, value in node.attributes.items()
        }
        self.add(
            replace(
                node,
                name=name,
                inputs=tuple(names.get(each, each) for each in node.inputs),
                outputs=outputs,
                attributes=attributes,
                captured=tuple(names.get(each, each) for each in node.captured),
            ),
            scope,
            graph,
        )

    def add(self, node: Node, scope: Scope | None = None, graph: Graph | None = None) -> None:
        lowered = self.advance(node, scope or self.scope, graph or self.graph)
        if lowered is not None:
            self.items.extend(lowered.items)

    def constant(self, name: str, value: np.ndarray, scope: Scope | None = None) -> str:
        scope = scope or self.scope
        scope.constants[name], scope.specs[name] = value, TensorSpec(value.shape, value.dtype.name)
        return name

    def graph_of(
        self, body: onnx.GraphProto, given: Sequence[str], turn: str, results: Sequence[str] | None = None
    ) -> list[str]:
        """A graph within the node, fed these tensors; what its outputs are called.

        results: what they shall be called ("" for one that nobody reads), where it makes them itself."""
        if not isinstance(body, onnx.GraphProto):
            raise Refused("what should be its graph is none")
        if id(body) not in self.held:
            self.held[id(body)] = {
                tensor.name: self.constant(
                    f"{self.prefix}{turn}:{tensor.name}", numpy_helper.to_array(tensor)
                )
                for tensor in body.initializer
            }
        if len(given) != len(body.input):
            raise Refused(f"its graph takes {len(body.input)} tensors, and it is given {len(given)}")
        names = self.held[id(body)] | dict(zip((value.name for value in body.input), given, strict=True))
        ends = [value.name for value in body.output]
        for end, result in zip(ends, results or (), strict=False):
            if result and end not in names and any(end in inner_node.output for inner_node in body.node):
                names[end] = result
        self.nodes(body.node, names, f"{self.prefix}{turn}:", ends=ends)
        return [names.get(end, end) for end in ends]

    def same(self, source: str, output: str, shape: tuple[int, ...] | None = None) -> str:
        """`output` as `source`, under another shape where one is given."""
        if source == output:
            return output
        spec = self.scope.spec(source)
        shape = spec.shape if shape is None else shape
        if source in self.scope.constants:
            return self.constant(output, np.reshape(self.scope.constants[source], shape))
        self.items.append(View(source, output))
        self.scope.specs[output] = TensorSpec(shape, spec.dtype)
        return output

    def gather(self, parts: Sequence[str], axis: int, output: str) -> None:
        """What each turn gave side by side along a new axis."""
        first = self.scope.shape(parts[0])
        axis = axis + len(first) + 1 if axis < 0 else axis
        for part in parts:
            if self.scope.spec(part) != self.scope.spec(parts[0]):
                raise Refused(
                    f"its turns give tensors of shapes {first} and {self.scope.shape(part)}, and "
                    "they must be alike"
                )
        shape = (*first[:axis], 1, *first[axis:])
        rows = tuple(self.same(part, f"{output}:{i}", shape) for i, part in enumerate(parts))
        self.add(Node(f"{self.prefix}{output}", "Concat", rows, (output,), {"axis": axis}))

    def finished(self) -> Lowered:
        """All that was written. What it gives is in the scope already."""
        used = [name for name in self.node.outputs if name]
        return Lowered(
            tuple(self.items),
            {name: self.scope.specs[name] for name in used if name in self.scope.specs},
        )


# ------------------------------------------------------------------------------------------------- functions


def _standard_function(
    node: Node, scope: Scope, graph: Graph
) -> tuple[onnx.FunctionProto, Mapping[str, onnx.AttributeProto]] | None:
    """What ONNX defines an operator as, for inputs of these types, and its attributes' defaults."""
    versions = {"": scope.opset} | {
        entry.domain: entry.version for entry in graph.proto.opset_import if entry.domain
    }
    domain = "" if node.domain in DEFAULT_DOMAINS else node.domain
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, versions.get(domain, 1), domain)
    except onnx.defs.SchemaError:
        return None
    body = None
    if schema.has_function:
        body = schema.function_body
        wanted = [v for v in schema.function_opset_versions if v <= versions[""]]
        if wanted and (bytes_ := schema.get_function_with_opset_version(max(wanted))):
            body = onnx.FunctionProto.FromString(bytes_)
    elif schema.has_context_dependent_function:
        types = [
            value_info(name, scope.spec(name)).type.SerializeToString()
            if name
            else onnx.TypeProto().SerializeToString()
            for name in node.inputs
        ]
        wanted = [v for v in schema.context_dependent_function_opset_versions if v <= versions[""]]
        if not wanted:
            return None
        bytes_ = schema.get_context_dependent_function_with_opset_version(
            max(wanted), node.proto().SerializeToString(), types
        )
        body = onnx.FunctionProto.FromString(bytes_) if bytes_ else None
    if body is None or not body.node:
        return None
    defaults = {
        name: attribute.default_value
        for name, attribute in schema.attributes.items()
        if attribute.default_value.type != onnx.AttributeProto.UNDEFINED
    }
    return body, defaults


def _called(
    node: Node,
    function: onnx.FunctionProto,
    defaults: Mapping[str, onnx.AttributeProto],
    scope: Scope,
    graph: Graph,
    advance: Advance,
) -> Lowered:
    """A function's nodes in the place of a call of it."""
    attributes = {attribute.name: attribute for attribute in node.proto().attribute}
    known = {attribute.name: attribute for attribute in function.attribute_proto}
    values = {**defaults, **known, **attributes}
    protos = [_with_attributes(inner_node, values) for inner_node in function.node]
    versions = {entry.domain: entry.version for entry in function.opset_import}
    shell = onnx.ModelProto(ir_version=graph.proto.ir_version)
    shell.opset_import.extend(function.opset_import)
    if "" not in versions:
        shell.opset_import.append(onnx.helper.make_opsetid("", scope.opset))
    opset = versions.get("", scope.opset)
    inner_graph = replace(graph, opset=opset, proto=shell)
    vars(inner_graph)["functions"] = graph.functions  # those of the model, which no call copies
    write = Writing(node, scope, graph, advance)
    names = dict.fromkeys(function.input, "")
    names |= dict(zip(function.input, node.inputs, strict=False))
    inner_node = {name for proto in protos for name in proto.output}
    for inner, output in zip(function.output, node.outputs, strict=False):
        if output and inner in inner_node and inner not in names:
            names[inner] = output
    write.nodes(protos, names, write.prefix, replace(scope, opset=opset), inner_graph)
    for inner, output in zip(function.output, node.outputs, strict=False):
        if output and (output in scope.consumed or names.get(inner, inner) in scope.specs):
            write.same(names.get(inner, inner), output)
    return write.finished()


def _with_attributes(made: onnx.NodeProto, values: Mapping[str, onnx.AttributeProto]) -> onnx.NodeProto:
    """A function's node with the values of a call in the place of what refers to them."""
    copy = onnx.NodeProto()
    copy.CopyFrom(made)
    del copy.attribute[:]
    for attribute in made.attribute:
        if not attribute.ref_attr_name:
            copy.attribute.append(attribute)
        elif attribute.ref_attr_name in values:
            attribute_copy = copy.attribute.add()
            attribute_copy.CopyFrom(values[attribute.ref_attr_name])
            attribute_copy.name = attribute.name
    for graph in graphs(copy):
        inner = [_with_attributes(each, values) for each in graph.node]
        del graph.node[:]
        graph.node.extend(inner)
    return copy
