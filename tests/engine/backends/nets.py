"""A small net with what LeNet and AlexNet have, for tests of whole sessions."""

from __future__ import annotations

import numpy as np
from onnx import helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from tests.engine.harness import make_model, random


def small_net(batch: int | str | None = "N") -> Graph:
    """x (batch, 3, 12, 12) → Conv Relu LRN MaxPool Conv Tanh Flatten Gemm Relu Gemm Softmax → y (batch, 5).

    batch: a symbol, a fixed size, or None for an axis without a name.
    """
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        node("Relu", ["c1"], ["r1"], "relu1"),
        node("LRN", ["r1"], ["n1"], "norm1", size=5, alpha=0.1),
        node("MaxPool", ["n1"], ["p1"], "pool1", kernel_shape=[3, 3], strides=[2, 2]),
        node("Conv", ["p1", "w2"], ["c2"], "conv2", group=2),
        node("Tanh", ["c2"], ["t2"], "tanh2"),
        node("Flatten", ["t2"], ["f"], "flatten"),
        node("Gemm", ["f", "w3", "b3"], ["g3"], "fc3", transB=1),
        node("Relu", ["g3"], ["r3"], "relu3"),
        node("Gemm", ["r3", "w4"], ["g4"], "fc4"),
        node("Softmax", ["g4"], ["y"], "prob", axis=1),
    ]
    constants = {
        "w1": random((16, 3, 3, 3), 1),
        "b1": random((16,), 2),
        "w2": random((16, 8, 2, 2), 3) * np.float32(0.2),
        "w3": random((20, 256), 4) * np.float32(0.1),
        "b3": random((20,), 5),
        "w4": random((20, 5), 6) * np.float32(0.2),
    }
    proto = make_model(nodes, {"x": ("N", 3, 12, 12)}, ["y"], constants, opset=13)
    first = proto.graph.input[0].type.tensor_type.shape.dim[0]
    if isinstance(batch, int):
        first.dim_value = batch
    elif batch is None:
        first.Clear()
    else:
        first.dim_param = batch
    return from_proto(proto, "small")
