"""One bad model costs no more than a sentence: never a hang, another exception or the end of the process."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from engine import proto_checks
from engine.importer import from_proto
from kernels.errors import ModelError
from tests.engine.harness import make_model


def refused(model: onnx.ModelProto, match: str) -> None:
    with pytest.raises(ModelError, match=match) as caught:
        from_proto(model)
    assert "\n" not in str(caught.value)


def with_functions(bodies: list[list[onnx.NodeProto]], called: int) -> onnx.ModelProto:
    """y = f<called>(x) in a model whose function f<i> has the nodes bodies[i], from x to y."""
    node = helper.make_node(f"f{called}", ["x"], ["y"], "call", domain="local")
    model = make_model([node], {"x": ("N", 2)}, ["y"])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    model.opset_import.append(opsets[1])
    model.functions.extend(
        helper.make_function("local", f"f{i}", ["x"], ["y"], body, opsets) for i, body in enumerate(bodies)
    )
    return model


def twice(before: int) -> list[onnx.NodeProto]:
    return [
        helper.make_node(f"f{before}", ["x"], ["t"], domain="local"),
        helper.make_node(f"f{before}", ["t"], ["y"], domain="local"),
    ]


RELU = [helper.make_node("Relu", ["x"], ["y"])]


def test_functions_that_call_the_one_before_twice() -> None:
    depth = 30
    refused(with_functions([RELU, *(twice(i) for i in range(depth))], depth), "more than 100,000 nodes")


def test_functions_that_only_double_a_few_times_are_taken() -> None:
    assert len(from_proto(with_functions([RELU, *(twice(i) for i in range(5))], 5)).nodes) == 1


def test_functions_that_call_each_other() -> None:
    refused(with_functions([twice(1), twice(0)], 0), "calls itself")


def test_a_chain_of_functions_that_is_too_deep() -> None:
    bodies = [RELU, *([helper.make_node(f"f{i}", ["x"], ["y"], domain="local")] for i in range(3000))]
    refused(with_functions(bodies, 3000), "more than 32 deep")
    refused(with_functions(bodies[::-1], 0), r"more than 32 deep|calls itself")


def nested(levels: int) -> onnx.ModelProto:
    cond = helper.make_tensor("cond", TensorProto.BOOL, [], [True])
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["o"])],
        "g",
        [],
        [helper.make_tensor_value_info("o", TensorProto.FLOAT, None)],
    )
    for _ in range(levels):
        node = helper.make_node("If", ["cond"], ["o"], then_branch=graph, else_branch=graph)
        graph = helper.make_graph(
            [node], "g", [], [helper.make_tensor_value_info("o", TensorProto.FLOAT, None)]
        )
    node = helper.make_node("If", ["cond"], ["y"], "if", then_branch=graph, else_branch=graph)
    model = make_model([node], {"x": ("N", 2)}, ["y"])
    model.graph.initializer.append(cond)
    return model


def test_subgraphs_within_subgraphs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert from_proto(nested(4)).nodes[0].op_type == "If"
    monkeypatch.setattr(proto_checks, "DEEPEST", 4)  # protobuf writes none that are as deep as the real limit
    refused(nested(4), "more than 4 deep")


def test_a_function_that_is_given_a_graph() -> None:
    node = helper.make_node("If", ["x"], ["y"])
    node.attribute.add(name="then_branch", ref_attr_name="g", type=onnx.AttributeProto.GRAPH)
    refused(with_functions([[node]], 0), "takes a graph as its attribute")
