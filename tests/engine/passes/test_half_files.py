"""Models in half precision: what computes is fed float32 and rounds once, what moves is left as it is."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from tests.engine.harness import agree, bare, make_model, random, run_plan

HALF = np.float16


def half(nodes: list, shape: tuple, constants: dict[str, np.ndarray], rank: int = 2) -> Graph:
    types = dict.fromkeys(("x", "y"), TensorProto.FLOAT16)
    return from_proto(make_model(nodes, {"x": shape}, ["y"], constants, 17, {"y": rank}, types), "half")


def test_a_small_net_in_half_precision() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["maps"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["maps"], ["on"], "relu"),
        helper.make_node("Flatten", ["on"], ["row"], "row"),
        helper.make_node("Gemm", ["row", "g"], ["scores"], "gemm"),
        helper.make_node("Softmax", ["scores"], ["y"], "softmax"),
    ]
    constants = {
        "w": random((4, 3, 3, 3), 1).astype(HALF),
        "b": random((4,), 2).astype(HALF),
        "g": (random((100, 5), 3) / 10).astype(HALF),
    }
    graph = half(nodes, ("N", 3, 5, 5), constants)
    agree(graph, {"x": random((2, 3, 5, 5)).astype(HALF)}, 2, tolerance=4e-3)


def test_each_node_rounds_once() -> None:
    """x · x is beyond float16's digits: rounded before it is added to, as a file in float16 says."""
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["squares"], "square"),
        helper.make_node("Sub", ["squares", "one"], ["y"], "less"),
    ]
    x = np.array([[1.001, 1.33, 3.14]], HALF)
    ours = run_plan(half(nodes, (1, 3), {"one": np.array(1, HALF)}), 1, {"x": x})["y"]
    squares = np.square(x.astype(np.float64)).astype(HALF)
    expected = (squares.astype(np.float64) - 1).astype(HALF)
    assert ours.dtype == HALF
    assert (ours == expected).all()
    assert (expected != (np.square(x.astype(np.float64)) - 1).astype(HALF)).any(), "it can tell"


def test_what_only_moves_is_not_widened() -> None:
    nodes = [
        helper.make_node("Concat", ["x", "x"], ["wide"], "both", axis=1),
        helper.make_node("Gather", ["wide", "places"], ["y"], "some", axis=1),
    ]
    graph = half(nodes, (2, 3), {"places": np.array([4, 0, 5])})
    assert [step.params.dtype for step in bare(graph, 2).steps] == ["float16", "float16"]
    agree(graph, {"x": random((2, 3)).astype(HALF)}, 2)


def test_a_tensor_that_several_read_is_widened_once() -> None:
    nodes = [
        helper.make_node("Exp", ["x"], ["a"], "exp"),
        helper.make_node("Tanh", ["x"], ["b"], "tanh"),
        helper.make_node("Mul", ["a", "b"], ["y"], "product"),
    ]
    steps = bare(half(nodes, (2, 3), {}), 2).steps
    assert sum(step.params.op == "cast" and step.inputs == ("x",) for step in steps) == 1
