"""The judge and files in half precision: an answer is held to the rounding of the type that it is stored in,
and to no more than that."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import TensorProto, helper

from bench.measure.answers import oracle
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.planning import groups
from tests.engine.harness import make_model

CHANNELS = 64
X = np.random.default_rng(1).standard_normal((2, CHANNELS, 6, 6)).astype(np.float16)
W = (np.random.default_rng(0).standard_normal((8, CHANNELS, 1, 1)) / 8).astype(np.float16)


def _graph(kind: int, dtype: str) -> Graph:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv"),
        helper.make_node("Relu", ["c"], ["y"], "on"),
    ]
    shape = ("N", *X.shape[1:])
    constants = {"w": W.astype(dtype)}
    return from_proto(
        make_model(nodes, {"x": shape}, ["y"], constants, 22, {"y": 4}, {"x": kind, "y": kind}), "half"
    )


def _right() -> np.ndarray:
    products = np.einsum("nchw,mc->nmhw", X.astype(np.float64), W[:, :, 0, 0].astype(np.float64))
    return np.maximum(products, 0)


def _half_sums() -> np.ndarray:
    """Each product and sum rounded to float16."""
    found = np.zeros((2, 8, 6, 6), np.float16)
    for c in range(CHANNELS):
        found = found + X[:, c, None] * W[None, :, c, :, :]
    return np.maximum(found, 0)


ANSWERS: dict[str, Callable[[], np.ndarray]] = {
    "in float32, rounded once": lambda: _right().astype(np.float32).astype(np.float16),
    "in bfloat16": lambda: _right().astype(np.float32).astype("bfloat16"),
    "summed in half precision": _half_sums,
    "one channel is missing": lambda: _right() * (np.arange(8) != 3)[:, None, None],
    "one element is off by four quanta": lambda: _right() + np.where(_right() == _right().max(), 2.0**-6, 0),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_half_file_is_held_to_its_own_rounding(answer: str) -> None:
    graph = _graph(TensorProto.FLOAT16, "float16")
    golden = oracle.golden(graph, {"x": X})
    (part,) = groups.groups(graph, len(X))
    stats = oracle.judged_alone(ANSWERS[answer]().astype(np.float32), graph, part, golden, "fp32")
    assert stats.ok == (answer == "in float32, rounded once"), stats.reason


def test_a_float32_file_is_not_held_to_less() -> None:
    graph = _graph(TensorProto.FLOAT, "float32")
    golden = oracle.golden(graph, {"x": X.astype(np.float32)})
    (part,) = groups.groups(graph, len(X))
    rounded = _right().astype(np.float16).astype(np.float32)
    assert not oracle.judged_alone(rounded, graph, part, golden, "fp32").ok
    assert oracle.judged_alone(_right().astype(np.float32), graph, part, golden, "fp32").ok
