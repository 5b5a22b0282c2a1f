"""Transpositions that undo each other, and casts to the same type: left out where what stands between becomes
part of the step in front, and kept where a tensor between is wanted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.planning.groups import groups
from engine.planning.planner import plan
from tests.engine.harness import agree, make_model, random

THERE, BACK = [0, 2, 3, 1], [0, 3, 1, 2]
X = random((3, 2, 6, 5))
WEIGHTS = {
    "w": random((4, 2, 3, 3), 1),
    "v": random((2, 4, 1, 1), 2),
    "channels": random((4,), 3),
    "columns": random((3, 1), 4),  # of an image as (n, h, w, c)
    "number": np.float32([0.5]),
}


def node(op: str, inputs: str | list[str], output: str, **attributes: Any) -> NodeProto:
    names = inputs.split() if isinstance(inputs, str) else inputs
    return helper.make_node(op, names, [output], f"to_{output}", **attributes)


def cast(source: str, output: str, to: int = TensorProto.FLOAT) -> NodeProto:
    return node("Cast", source, output, to=to)


def made(between: list[NodeProto], back: list[int] = BACK, outputs: tuple[str, ...] = ("y",)) -> Graph:
    """Conv → turned → between ("t" to "u") → turned back → Conv."""
    nodes = [
        node("Conv", "x w", "c"),
        node("Transpose", "c", "t", perm=THERE),
        *between,
        node("Transpose", "u", "b", perm=back),
        node("Conv", "b v", "y"),
    ]
    ranks = dict.fromkeys(outputs, 4)
    return from_proto(make_model(nodes, {"x": ("N", 2, 6, 5)}, outputs, WEIGHTS, ranks=ranks), "net")


def steps(graph: Graph, batch: int = 3) -> list[str]:
    """What runs, by the operators of its params."""
    return [step.params.op for step in plan(graph, batch, "cpu").steps if step.params is not None]


@pytest.mark.parametrize(
    "between",
    [
        [node("Add", "t channels", "a"), node("Tanh", "a", "u")],
        [node("Mul", "channels t", "a"), cast("a", "k"), node("Relu", "k", "u")],
        [cast("t", "k"), cast("k", "l"), node("Sub", "l number", "a"), cast("a", "u")],
        [cast("t", "u")],
    ],
    ids=["sum", "product", "casts", "nothing"],
)
def test_what_stands_between_becomes_part_of_the_convolution(between: list[NodeProto]) -> None:
    graph = made(between)
    assert steps(graph) == ["conv", "conv"]
    first = next(group for group in groups(graph, 3) if "to_c" in group.nodes)
    wanted = ["to_c", "to_t", *(each.name for each in between), "to_b"]
    assert list(first.nodes) == (wanted if len(between) > 1 else ["to_c"]), "each node is in one layer"
    assert sorted(name for group in groups(graph, 3) for name in group.nodes) == sorted([*wanted, "to_y"])
    agree(graph, {"x": X}, 3)


@pytest.mark.parametrize(
    ("between", "outputs", "back"),
    [
        ([node("Add", "t channels", "a"), node("Tanh", "a", "u")], ("y", "a"), BACK),
        ([node("Add", "t channels", "u")], ("y",), [0, 3, 2, 1]),
        ([node("Exp", "t", "a"), node("Add", "a channels", "u")], ("y",), BACK),
        ([node("Add", "t t", "u")], ("y",), BACK),
        ([node("Softmax", "t", "u", axis=3)], ("y",), BACK),
    ],
    ids=["given out", "no inverse", "not the convolution's", "read twice", "a row's"],
)
def test_nothing_is_left_out_where_a_tensor_between_would_change(
    between: list[NodeProto], outputs: tuple[str, ...], back: list[int]
) -> None:
    if back != BACK:
        weights = WEIGHTS | {"v": random((2, 4, 1, 1), 2)}
        nodes = [
            node("Conv", "x w", "c"),
            node("Transpose", "c", "t", perm=THERE),
            *between,
            node("Transpose", "u", "y", perm=back),
        ]
        graph = from_proto(make_model(nodes, {"x": ("N", 2, 6, 5)}, outputs, weights, ranks={"y": 4}), "net")
    else:
        graph = made(between, outputs=outputs)
    assert steps(graph).count("transpose") == 2
    agree(graph, {"x": X}, 3)


def test_one_step_between_alone_runs_in_the_order_of_its_input() -> None:
    """Its constant is turned, too."""
    nodes = [
        node("Transpose", "x", "t", perm=THERE),
        node("Sub", "columns t", "u"),
        node("Transpose", "u", "y", perm=BACK),
    ]
    weights = {"columns": random((5, 2), 4)}
    graph = from_proto(make_model(nodes, {"x": ("N", 2, 6, 5)}, ("y",), weights, ranks={"y": 4}), "net")
    assert steps(graph) == ["binary"]
    for batch in (1, 3):
        agree(graph, {"x": X[:batch]}, batch)


def flattened(perm: list[int], *after: NodeProto, **more: np.ndarray) -> Graph:
    """Turned → one row an image → what follows."""
    nodes = [node("Transpose", "x", "t", perm=perm), cast("t", "k"), node("Reshape", "k rows", "f"), *after]
    weights = {"rows": np.array([-1, 60]), "m": random((60, 7), 5), "mt": random((7, 60), 6), **more}
    return from_proto(make_model(nodes, {"x": ("N", 2, 6, 5)}, ("y",), weights, ranks={"y": 2}), "net")


@pytest.mark.parametrize(
    ("perm", "product"),
    [
        (THERE, [node("MatMul", "f m", "y")]),
        ([0, 3, 2, 1], [node("Gemm", "f mt bias", "g", transB=1, beta=0.5), node("Relu", "g", "y")]),
        ([0, 1, 3, 2], [node("MatMul", "f m", "y")]),
    ],
    ids=["channels last", "Gemm", "images turned"],
)
def test_what_a_product_reads_turned_is_read_as_it_was(perm: list[int], product: list[NodeProto]) -> None:
    graph = flattened(perm, *product, bias=random((7,), 7))
    for batch in (1, 3):
        (group,) = groups(graph, batch)
        assert sorted(group.nodes) == sorted(["to_t", "to_k", "to_f", *(each.name for each in product)])
        assert steps(graph, batch) == ["gemm"]
        agree(graph, {"x": X[:batch]}, batch)


@pytest.mark.parametrize(
    ("perm", "after"),
    [
        ([1, 2, 3, 0], [node("MatMul", "f m", "y")]),
        (THERE, [node("MatMul", "f m", "p"), node("ReduceMax", "f", "r"), node("Add", "p r", "y")]),
        (THERE, [node("MatMul", "mt f", "y")]),
        (THERE, [node("Reshape", "x columns", "z"), node("MatMul", "f z", "y")]),
    ],
    ids=["rows turned", "read twice", "the second factor", "weights that are not constant"],
)
def test_a_product_that_needs_them_turned_gets_them_turned(perm: list[int], after: list[NodeProto]) -> None:
    more = {"mt": random((7, 3), 6)} if "mt" in after[0].input else {}
    graph = flattened(perm, *after, columns=np.array([60, -1]), **more)
    assert "transpose" in steps(graph)
    agree(graph, {"x": X}, 3)


def test_what_is_one_step_and_no_part_of_the_convolution_runs_in_its_order_too() -> None:
    graph = made([node("Add", "t columns", "a"), node("Tanh", "a", "u")])
    assert steps(graph) == ["conv", "binary", "conv"]
    agree(graph, {"x": X}, 3)


def test_what_undoes_one_and_is_undone_by_the_next_goes_once() -> None:
    twice = [
        node("Relu", "t", "r"),
        node("Transpose", "r", "p", perm=BACK),
        node("Transpose", "p", "q", perm=THERE),
        node("Add", "q channels", "u"),
    ]
    graph = made(twice)
    assert steps(graph) == ["conv", "binary", "conv"]
    agree(graph, {"x": X}, 3)
    # What stands between the first two cannot be turned.
    graph = made([node("Softmax", "t", "r", axis=3), *twice[1:]])
    assert steps(graph).count("transpose") == 2
    agree(graph, {"x": X}, 3)


def test_a_cast_to_another_type_is_none_that_changes_nothing() -> None:
    nodes = [
        node("Conv", "x w", "c"),
        cast("c", "wide", TensorProto.DOUBLE),
        cast("wide", "narrow"),
        node("Relu", "narrow", "r"),
        node("Conv", "r v", "y"),
    ]
    graph = from_proto(make_model(nodes, {"x": ("N", 2, 6, 5)}, ("y",), WEIGHTS, ranks={"y": 4}), "net")
    assert steps(graph).count("cast") + steps(graph).count("unary") >= 2
    agree(graph, {"x": X}, 3)


@pytest.mark.parametrize("part", ["a:turned", "a:constant", "y:read", "y:turned rows"])
def test_a_tensor_of_the_model_may_be_called_as_what_is_made_here(part: str) -> None:
    nodes = [
        node("Conv", ["x", part], "c"),
        node("Transpose", "c", "t", perm=THERE),
        node("Add", "t channels", "a"),
        node("Relu", "a", "r"),
        node("Transpose", "r", "b", perm=BACK),
        node("Conv", ["b", part], "d"),
        node("Transpose", "d", "e", perm=THERE),
        node("Reshape", "e rows", "f"),
        node("MatMul", "f m", "y"),
    ]
    weights = {"channels": random((2,), 3), "rows": np.array([-1, 60]), "m": random((60, 7), 5)}
    weights[part] = random((2, 2, 1, 1), 8)
    graph = from_proto(make_model(nodes, {"x": ("N", 2, 6, 5)}, ("y",), weights, ranks={"y": 2}), "net")
    assert "transpose" not in steps(graph)
    agree(graph, {"x": X}, 3)
