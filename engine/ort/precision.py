"""float16 by rewriting the model, for a backend that runs ONNX as it is.

Weights and inner tensors become float16; inputs and outputs stay float32 behind a Cast. Attributes (alpha,
beta, epsilon, …) are float32 by ONNX's definition and stay so. Where an operator's ONNX schema does not take
float16 at an input, that input stays float32.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import onnx
from onnx import TensorProto, helper, numpy_helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.graph.initializers import initializer
from engine.graph.skeleton import inferred
from engine.planning.submodel import IR_VERSION
from kernels.errors import UnsupportedError
from kernels.ops import Params
from kernels.packing import half

_last: dict[tuple[str, str], Graph] = {}


def to_fp16(graph: Graph) -> Graph:
    """The model computing in float16, its inputs and outputs as they were.

    Finite weights beyond ±65504 become that. Node names stay; the added Casts are named after their tensors.
    The last one is kept: a model that is prepared in many ways is converted once.
    Raises UnsupportedError for a node with subgraphs or of unknown type.
    """
    key = (graph.sha256, graph.name)
    known = _last.get(key)
    if known is None:
        known = _Conversion(graph).converted()
        _last.clear()
        _last[key] = known
    return known


def nbytes(graph: Graph, nodes: Sequence[str], params: Sequence[Params], precision: str) -> int:
    """Bytes that ONNX Runtime reads and writes at least for these nodes, which are these operators: those of
    the model that it is given. 0 where they cannot be known: the conversion left some of their tensors in
    float32."""
    if precision != "fp16":
        return sum(p.nbytes for p in params)
    try:
        narrow = {node.name: node for node in to_fp16(graph).nodes}
    except UnsupportedError:
        return 0
    its = [narrow[name] for name in nodes if name in narrow]
    if any(name.endswith(":fp32") for node in its for name in (*node.inputs, *node.outputs)):
        return 0
    return sum(p.nbytes_at(2, 2) for p in params)


class _Conversion:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.source = graph.proto
        inferred_types = inferred(self.source, graph.name)
        self.types = {
            value.name: value.type.tensor_type.elem_type
            for value in (*inferred_types.input, *inferred_types.output, *inferred_types.value_info)
        }
        self.types.update((tensor.name, tensor.data_type) for tensor in self.source.graph.initializer)
        self.weights = {tensor.name: tensor for tensor in self.source.graph.initializer}
        self.inputs = {v.name for v in self.source.graph.input} - self.weights.keys()
        self.outputs = {v.name for v in self.source.graph.output}
        self.opsets = {entry.domain or "ai.onnx": entry.version for entry in self.source.opset_import}
        self.nodes: list[onnx.NodeProto] = []
        self.wide_weights: set[str] = set()
        self.half_weights: set[str] = set()
        # The names under which a float32 tensor of the source is had in each type, as far as it is.
        self.halves: dict[str, str] = {}
        self.wides: dict[str, str] = {name: name for name in self.inputs}

    def converted(self) -> Graph:
        for node in self.source.graph.node:
            self._node(node)
        for name in sorted(self.outputs):
            if self.types.get(name) != TensorProto.FLOAT or name in self.inputs:
                continue
            if name in self.weights:
                self.wide_weights.add(name)
            elif self.wides.get(name) != name:
                self._cast(self.halves[name], name, TensorProto.FLOAT)
        proto = onnx.ModelProto(ir_version=max(self.source.ir_version, IR_VERSION))
        proto.opset_import.extend(self.source.opset_import)
        proto.functions.extend(self.source.functions)
        proto.graph.name = self.source.graph.name or "graph"
        proto.graph.node.extend(self.nodes)
        proto.graph.input.extend(v for v in self.source.graph.input if v.name in self.inputs)
        proto.graph.output.extend(self.source.graph.output)
        values = dict(self.graph.initializers)
        for name, tensor in self.weights.items():
            if tensor.data_type != TensorProto.FLOAT or name in self.wide_weights:
                proto.graph.initializer.append(tensor)
            if name in self.half_weights:
                narrow = values[f"{name}:fp16"] = half(values[name])
                proto.graph.initializer.append(initializer(f"{name}:fp16", narrow))
        digest = hashlib.sha256(f"{self.graph.sha256}\0fp16".encode()).hexdigest()
        return from_proto(proto, self.graph.name, sha256=digest, values=values)

    def _node(self, source: onnx.NodeProto) -> None:
        where = f"node {source.name!r} ({source.op_type}) of model {self.graph.name!r}"
        if any(a.HasField("g") or a.graphs for a in source.attribute):
            raise UnsupportedError(f"{where} has subgraphs, and the conversion to fp16 does not enter them")
        for name in source.output:
            if name and not self.types.get(name):
                raise UnsupportedError(
                    f"{where} cannot be converted to fp16: the type of {name!r} is not known"
                )
        node = onnx.NodeProto()
        node.CopyFrom(source)
        schema = self._schema(source)
        narrowed: set[str] = set()
        for index, name in enumerate(source.input):
            if not name or self.types.get(name) != TensorProto.FLOAT:
                continue
            variable = _formal(schema.inputs, index).type_str if schema else ""
            if schema and _takes_half(schema, variable):
                node.input[index] = self._half(name)
                narrowed.add(variable)
            else:
                node.input[index] = self._wide(name)
        is_half = self._made_half(node)
        for index, name in enumerate(source.output):
            if not name or self.types[name] != TensorProto.FLOAT:
                continue
            if is_half or (schema and _formal(schema.outputs, index).type_str in narrowed):
                node.output[index] = self.halves[name] = f"{name}:fp16" if name in self.outputs else name
            else:
                node.output[index] = self.wides[name] = name if name in self.outputs else f"{name}:fp32"
        self.nodes.append(node)

    def _schema(self, node: onnx.NodeProto) -> onnx.defs.OpSchema | None:
        domain = "" if node.domain in ("", "ai.onnx") else node.domain
        version = self.opsets.get(domain or "ai.onnx", 0)
        if not onnx.defs.has(node.op_type, version, domain):
            return None
        return onnx.defs.get_schema(node.op_type, version, domain)

    def _made_half(self, node: onnx.NodeProto) -> bool:
        """Whether the node says itself what type it makes, and now says float16 (`node` is changed)."""
        if node.domain not in ("", "ai.onnx"):
            return False
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.FLOAT16
                return True
            is_value = node.op_type in ("Constant", "ConstantOfShape") and attribute.name == "value"
            if is_value and attribute.t.data_type == TensorProto.FLOAT:
                value = half(numpy_helper.to_array(attribute.t))
                attribute.t.CopyFrom(numpy_helper.from_array(value, attribute.t.name))
                return True
        return False

    def _half(self, name: str) -> str:
        if name in self.weights:
            self.half_weights.add(name)
            return f"{name}:fp16"
        if name not in self.halves:
            self.halves[name] = self._cast(self.wides[name], f"{name}:fp16", TensorProto.FLOAT16)
        return self.halves[name]

    def _wide(self, name: str) -> str:
        if name in self.weights:
            self.wide_weights.add(name)
            return name
        if name not in self.wides:
            self.wides[name] = self._cast(self.halves[name], f"{name}:fp32", TensorProto.FLOAT)
        return self.wides[name]

    def _cast(self, source: str, target: str, to: int) -> str:
        self.nodes.append(helper.make_node("Cast", [source], [target], f"{target}:cast", to=to))
        return target


def _formal(
    parameters: Sequence[onnx.defs.OpSchema.FormalParameter], index: int
) -> onnx.defs.OpSchema.FormalParameter:
    return parameters[min(index, len(parameters) - 1)]


def _takes_half(schema: onnx.defs.OpSchema, variable: str) -> bool:
    allowed: Mapping[str, list[str]] = {
        c.type_param_str: list(c.allowed_type_strs) for c in schema.type_constraints
    }
    return "tensor(float16)" in allowed.get(variable, [variable])
