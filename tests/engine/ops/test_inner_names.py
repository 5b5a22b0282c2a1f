"""A tensor within an operator may be called as one of the file's: both keep their values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.ops import operators
from engine.passes.trace import start
from tests.engine.harness import agree, make_model, random

node = helper.make_node


def within(made: Any, constants: dict[str, np.ndarray]) -> list[str]:
    """What a node y = f(x) calls the tensors within it."""
    graph = from_proto(make_model([made], {"x": ("N", 4)}, ["y"], constants), "alone")
    (it,) = graph.nodes
    lowered = operators()[it.op_type](it, start(graph, 3))
    return sorted({*lowered.specs, *lowered.constants} - {"y"})


def beside(made: Any, constants: dict[str, np.ndarray], name: str, before: bool) -> Graph:
    """The node, and a tensor of that name that another makes of x, both given out."""
    other = node("Neg", ["x"], [name], "other")
    nodes = [other, made] if before else [made, other]
    return from_proto(make_model(nodes, {"x": ("N", 4)}, ["y", name], constants), "beside")


NODES: list[tuple[Any, dict[str, np.ndarray]]] = [
    (node("Concat", ["x"] * 40, ["y"], "it", axis=1), {}),
    (node("Sum", ["x", "x", "c"], ["y"], "it"), {"c": random((4,))}),
    (node("Mean", ["x", "c"], ["y"], "it"), {"c": random((4,))}),
    (node("Pow", ["x", "c"], ["y"], "it"), {"c": np.array([2, 1, 3, 2])}),
    (node("Trilu", ["x"], ["y"], "it"), {}),
    (node("Hardmax", ["x"], ["y"], "it"), {}),
    (node("LpNormalization", ["x"], ["y"], "it", axis=1), {}),
]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(("made", "constants"), NODES, ids=[made.op_type for made, _ in NODES])
def test_a_name_that_the_file_has_too(made: Any, constants: dict[str, np.ndarray], before: bool) -> None:
    names = within(made, constants)
    assert names
    for name in names:
        agree(beside(made, constants, name, before), {"x": random((3, 4), 5)}, 3)


@pytest.mark.parametrize("made", [NODES[0][0]])
def test_the_node_itself_reads_a_tensor_of_such_a_name(made: Any) -> None:
    """As the turns of a Scan do, of which more than one Concat takes come together."""
    (name,) = within(made, {})[:1]
    nodes = [node("Neg", ["x"], [name], "other"), node("Concat", ["x"] * 39 + [name], ["y"], "it", axis=1)]
    nodes[1].input[0] = name
    agree(from_proto(make_model(nodes, {"x": ("N", 4)}, ["y"]), "reads"), {"x": random((3, 4))}, 3)
