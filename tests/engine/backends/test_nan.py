"""NaN and infinity go through our engine where ONNX says that they do: in float64 they do, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench.measure.answers import accuracy, oracle
from engine.backend import Options
from engine.backends import get
from engine.graph.graph import Graph
from tests.engine.harness import one_node, random

IMAGE, ROW = (2, 3, 9, 9), (4, 40)
# Pools, reductions and activations: what each does to NaN is its own (a comparison that NaN does not meet).
NODES: tuple[tuple[str, tuple[int, ...], dict[str, Any]], ...] = (
    ("MaxPool", IMAGE, {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("MaxPool", IMAGE, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    ("AveragePool", IMAGE, {"kernel_shape": [3, 3], "strides": [2, 2]}),
    ("GlobalMaxPool", IMAGE, {}),
    ("GlobalAveragePool", IMAGE, {}),
    ("ReduceMax", ROW, {"axes": [1], "keepdims": 0}),
    ("ReduceMin", ROW, {"axes": [1], "keepdims": 1}),
    ("ReduceSum", ROW, {"keepdims": 1}),
    ("Relu", ROW, {}),
    ("LeakyRelu", ROW, {"alpha": 0.1}),
    ("Sigmoid", ROW, {}),
    ("Tanh", ROW, {}),
    ("Elu", ROW, {}),
    ("Selu", ROW, {}),
    ("Softplus", ROW, {}),
    ("Softsign", ROW, {}),
    ("HardSigmoid", ROW, {}),
    ("Softmax", ROW, {"axis": 1}),
    ("Abs", ROW, {}),
    ("Sqrt", ROW, {}),
)


def with_nan(shape: tuple[int, ...], seed: int) -> np.ndarray:
    x = random(shape, seed)
    places = np.random.default_rng(seed).integers(0, x.size, 5)
    x.reshape(-1)[places] = np.nan
    return x


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("op_type", "shape", "attributes"), NODES, ids=[f"{n[0]}{i}" for i, n in enumerate(NODES)]
)
def test_nan_goes_through_as_onnx_says(op_type: str, shape: tuple[int, ...], attributes: Any) -> None:
    graph: Graph = one_node(op_type, shape, opset=11, **attributes)
    for seed in range(2):
        x = with_nan(shape, seed)
        with np.errstate(all="ignore"):
            right = oracle.run(graph, {"x": x}, ["y"])["y"]
        assert np.isnan(right).any()
        session = get("engine-cpu").prepare(graph, len(x), "fp32", Options(threads=1))
        try:
            session.bind({"x": x})
            session.run()
            session.synchronize()
            stats = accuracy.judged(session.fetch()["y"], right, "fp32")
        finally:
            session.close()
        assert stats.ok, stats.reason
