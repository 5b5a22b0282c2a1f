"""What exporters write for shapes is worked out with the plan: none of it runs, and the answers are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from tests.engine.harness import agree, bare, make_model, random

node = helper.make_node


def net(nodes: list[Any], x: tuple[int, ...], rank: int, opset: int = 17, **constants: Any) -> Graph:
    arrays = {name: np.asarray(value) for name, value in constants.items()}
    return from_proto(make_model(nodes, {"x": ("N", *x[1:])}, ["y"], arrays, opset, {"y": rank}))


def flatten_by_view(opset: int) -> Graph:
    """x.view(x.size(0), -1)."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"], axis=0),
        node("Unsqueeze", ["n", "axes"], ["u"]) if opset >= 13 else node("Unsqueeze", ["n"], ["u"], axes=[0]),
        node("Concat", ["u", "rest"], ["shape"], axis=0),
        node("Reshape", ["x", "shape"], ["y"]),
    ]
    more = {"axes": [0]} if opset >= 13 else {}
    return net(nodes, (2, 3, 4, 5), 2, opset, zero=0, rest=[-1], **more)


def flatten_by_product() -> Graph:
    """torch.flatten of an image of which nothing is known beforehand."""
    nodes = [
        node("Relu", ["x"], ["c"]),
        node("Shape", ["c"], ["s"]),
        node("Slice", ["s", "i0", "i1"], ["n"]),
        node("Slice", ["s", "i1", "i4"], ["rest"]),
        node("ReduceProd", ["rest"], ["p"], keepdims=1),
        node("Concat", ["n", "p"], ["shape"], axis=0),
        node("Reshape", ["c", "shape"], ["y"]),
    ]
    return net(nodes, (2, 3, 4, 5), 2, i0=[0], i1=[1], i4=[4])


def halves() -> Graph:
    """floor(h / 2), by way of floating point, as older exporters divide."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "two"], ["h"], axis=0),
        node("Cast", ["h"], ["wide"], to=TensorProto.FLOAT),
        node("Div", ["wide", "by"], ["half"]),
        node("Floor", ["half"], ["floor"]),
        node("Cast", ["floor"], ["whole"], to=TensorProto.INT64),
        node("Unsqueeze", ["whole", "axes"], ["u"]),
        node("Concat", ["n", "minus", "u"], ["shape"], axis=0),
        node("Reshape", ["x", "shape"], ["y"]),
    ]
    return net(nodes, (2, 3, 4, 5), 3, two=2, by=np.float32(2), axes=[0], n=[0], minus=[-1])


def positions() -> Graph:
    """A constant expanded over the batch, and a range that is one."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Slice", ["s", "i0", "i1"], ["n"]),
        node("Concat", ["n", "rest"], ["shape"], axis=0),
        node("ConstantOfShape", ["shape"], ["zeros"]),
        node("Range", ["first", "last", "step"], ["row"]),
        node("Expand", ["row", "shape"], ["rows"]),
        node("Add", ["zeros", "rows"], ["places"]),
        node("Add", ["x", "places"], ["y"]),
    ]
    numbers = {"first": np.float32(0), "last": np.float32(4), "step": np.float32(1)}
    return net(nodes, (2, 3, 4), 3, i0=[0], i1=[1], rest=[3, 4], **numbers)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    ("graph", "shape", "runs"),
    [
        *((flatten_by_view(opset), (3, 4, 5), ["unary"]) for opset in (7, 11, 13, 17, 23)),
        (flatten_by_product(), (3, 4, 5), ["unary"]),
        (halves(), (3, 4, 5), ["unary"]),
        (positions(), (3, 4), ["binary"]),
    ],
)
def test_shapes_are_worked_out_beforehand(
    graph: Graph, shape: tuple[int, ...], runs: list[str], batch: int
) -> None:
    agree(graph, {"x": random((batch, *shape))}, batch)
    assert [step.op for step in bare(graph, batch).steps] == runs


@pytest.mark.parametrize("batch", [1, 3])
def test_a_lenet_of_keras(batch: int) -> None:
    """NHWC outside, NCHW within, a transposition round each layer."""
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
        node("Conv", ["t", "w1"], ["c1"], kernel_shape=[5, 5], auto_pad="SAME_UPPER"),
        node("Transpose", ["c1"], ["c1t"], perm=[0, 2, 3, 1]),
        node("Add", ["c1t", "b1"], ["a1"]),
        node("Relu", ["a1"], ["r1"]),
        node("Transpose", ["r1"], ["r1t"], perm=[0, 3, 1, 2]),
        node("AveragePool", ["r1t"], ["p1"], kernel_shape=[2, 2], strides=[2, 2], auto_pad="VALID"),
        node("Transpose", ["p1"], ["p1t"], perm=[0, 2, 3, 1]),
        node("Reshape", ["p1t", "flat"], ["f"]),
        node("MatMul", ["f", "w2"], ["m"]),
        node("Softmax", ["m"], ["y"], axis=-1),
    ]
    weights = {"w1": random((6, 1, 5, 5), 1), "b1": random((6,), 2), "w2": random((150, 4), 3)}
    graph = net(nodes, (2, 10, 10, 1), 2, flat=[-1, 150], **weights)
    agree(graph, {"x": random((batch, 10, 10, 1))}, batch)
