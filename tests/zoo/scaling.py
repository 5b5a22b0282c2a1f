"""Deviations of drawn weights at which activations stay near unit variance, in a net of any depth.

The net is run once, node by node: what multiplies (Conv, Gemm, MatMul) is scaled so that its own output has
deviation 1 ("All you need is a good init", Mishkin and Matas, 2016). What a node adds is drawn small, what it
scales by near 1. Runs in the environment of the `train` extra, by ONNX Runtime.
"""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from tests.zoo.drawn import Recipe, draw

# The most numbers that are kept with their values: bounds, the means of an image's channels.
MOST_KEPT = 64
_FLOAT = onnx.TensorProto.FLOAT
UNIT, ADDED, FACTOR = Recipe(0.0, 1.0), Recipe(0.0, 0.1), Recipe(1.0, 0.1)
LINEAR = ("Conv", "ConvTranspose", "Gemm", "MatMul")
# By operator, what its inputs are where they are weights.
ROLES = {
    "Conv": {1: UNIT, 2: ADDED},
    "ConvTranspose": {1: UNIT, 2: ADDED},
    "Gemm": {1: UNIT, 2: ADDED},
    "MatMul": {0: UNIT, 1: UNIT},
    "BatchNormalization": {1: FACTOR, 2: ADDED, 3: ADDED, 4: FACTOR},
    "LayerNormalization": {1: FACTOR, 2: ADDED},
    "Add": {0: ADDED, 1: ADDED},
    "Expand": {0: ADDED},
    "Mul": {0: FACTOR, 1: FACTOR},
}
VIEWS = ("Identity", "Transpose", "Reshape", "Unsqueeze")  # hand on a weight in another form


def recipes(proto: onnx.ModelProto, seed: int) -> dict[str, Recipe]:
    """How each weight of the model is drawn, by name. Raises ValueError for one that is for nothing known."""
    found, origins = _roles(proto)
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    values |= {name: draw(name, values[name].shape, by, seed) for name, by in found.items()}
    values |= {info.name: _image(info, seed) for info in proto.graph.input if info.name not in values}
    scaled: set[str] = set()
    for node in proto.graph.node:
        inputs = [values[name] if name else None for name in node.input]
        for index in (0, 1) if node.op_type in LINEAR else ():
            origin = origins.get(node.input[index], "")
            if found.get(origin) is UNIT and origin not in scaled:
                alone = _run(node, [*inputs[:2], *(None for _ in inputs[2:])], proto)[0]
                deviation = float(f"{1.0 / (float(np.std(alone)) or 1.0):.3g}")
                found[origin] = Recipe(0.0, deviation)
                scaled.add(origin)
                inputs[index] = values[node.input[index]] = values[node.input[index]] * np.float32(deviation)
        values.update(zip(node.output, _run(node, inputs, proto), strict=True))
    return found


def _roles(proto: onnx.ModelProto) -> tuple[dict[str, Recipe], dict[str, str]]:
    """The recipe of each weight to begin with, and the weight that a tensor is, maybe in another form."""
    sizes = {tensor.name: math.prod(tensor.dims) for tensor in proto.graph.initializer}
    found: dict[str, Recipe] = {}
    origins = {tensor.name: tensor.name for tensor in proto.graph.initializer if tensor.data_type == _FLOAT}
    for node in proto.graph.node:
        if node.op_type in VIEWS and node.input[0] in origins:
            origins[node.output[0]] = origins[node.input[0]]
            continue
        for index, by in ROLES.get(node.op_type, {}).items():
            origin = origins.get(node.input[index], "") if index < len(node.input) else ""
            if sizes.get(origin, 0) > 1:
                found.setdefault(origin, by)
    for name, size in sizes.items():
        if name in origins and name not in found and size > MOST_KEPT:
            raise ValueError(f"it is not known what the weight {name} of {size} elements is for")
    return found, origins


def _image(info: onnx.ValueInfoProto, seed: int) -> np.ndarray:
    """Two images where the batch is dynamic, of values between 0 and 1 as prepared images have."""
    shape = [dim.dim_value or 2 for dim in info.type.tensor_type.shape.dim]
    return np.random.Generator(np.random.PCG64(seed)).random(shape, np.float32)


def _run(node: onnx.NodeProto, inputs: list[np.ndarray | None], proto: onnx.ModelProto) -> list[np.ndarray]:
    """The outputs of one node; an input that is None is left out."""
    alone = onnx.NodeProto()
    alone.CopyFrom(node)
    for index, array in enumerate(inputs):
        if array is None:
            alone.input[index] = ""
    given = {name: array for name, array in zip(alone.input, inputs, strict=True) if name}
    sources = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in given.items()
        if array is not None
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in alone.output]
    model = helper.make_model(
        helper.make_graph([alone], "node", sources, outputs),
        opset_imports=list(proto.opset_import),
        ir_version=min(proto.ir_version, 10),
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, given)
