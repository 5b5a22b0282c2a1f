"""Shapes of nodes that the engine cannot run, from ONNX's own shape inference, one node at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import onnx

from engine.graph.graph import Graph, Node
from engine.graph.inference import infer_shapes
from engine.graph.plan import MOST_ELEMENTS, TensorSpec

# Elements up to which a constant is shown to the shape function, which reads the values of shapes and axes.
SMALL = 1024


def infer_node(
    node: Node, specs: Mapping[str, TensorSpec], constants: Mapping[str, np.ndarray], graph: Graph
) -> dict[str, TensorSpec]:
    """Specs of the node's outputs that ONNX can tell from its inputs' specs and constants; maybe none."""
    names = list(node.reads)
    if any(name not in specs for name in names):
        return {}
    try:
        proto = graph.node_protos.get(node.name) or node.proto()
        return _known(_inferred(proto, names, specs, constants, graph))
    except Exception:
        # Inference is a courtesy here: the node is shown without a shape.
        return {}


def _inferred(
    found: onnx.NodeProto,
    names: list[str],
    specs: Mapping[str, TensorSpec],
    constants: Mapping[str, np.ndarray],
    graph: Graph,
) -> onnx.ModelProto:
    inputs, initializers = [], []
    for name in dict.fromkeys(names):
        spec = specs[name]
        if name in constants and constants[name].size <= SMALL:
            initializers.append(onnx.numpy_helper.from_array(np.asarray(constants[name]), name))
        else:
            inputs.append(value_info(name, spec))
    outputs = [onnx.ValueInfoProto(name=name) for name in found.output if name]
    model = onnx.helper.make_model(
        onnx.helper.make_graph([found], "node", inputs, outputs, initializers),
        opset_imports=list(graph.proto.opset_import),
        functions=list(graph.functions.values()),
    )
    return infer_shapes(model)


def _known(inferred: onnx.ModelProto) -> dict[str, TensorSpec]:
    """What inference told of the outputs, where it told a shape that memory can hold."""
    known = {}
    for value in inferred.graph.output:
        tensor = value.type.tensor_type
        if tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim):
            shape = tuple(dim.dim_value for dim in tensor.shape.dim)
            if min(shape, default=0) < 0 or math.prod(shape) > MOST_ELEMENTS:
                continue
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
            known[value.name] = TensorSpec(shape, dtype)
    return known


def value_info(name: str, spec: TensorSpec) -> onnx.ValueInfoProto:
    """The tensor as ONNX declares it, every dimension given."""
    return onnx.helper.make_tensor_value_info(
        name, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(spec.dtype)), list(spec.shape)
    )
