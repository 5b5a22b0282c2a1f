"""If, Loop, Scan and functions, written out: the answers are ONNX Runtime's, or ONNX's evaluator's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.passes import written_out
from engine.planning.groups import groups
from engine.planning.submodel import extract
from kernels.errors import UnsupportedError
from tests import sampling
from tests.engine.harness import agree, bare, make_model, random, run_plan
from tests.engine.passes import drawn_control

few = settings(max_examples=10, deadline=None)
node = helper.make_node


def value(name: str, shape: list[Any] | None, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def branch(nodes: list[onnx.NodeProto], output: str, rank: int = 2) -> onnx.GraphProto:
    return helper.make_graph(nodes, "branch", [], [value(output, [None] * rank)])


def chosen(condition: Any, **constants: np.ndarray) -> Graph:
    """x · 2 or tanh(x) + w, where w and a tensor made of x lie outside the If."""
    nodes = [
        node("Abs", ["x"], ["size"], "abs"),
        *condition,
        node(
            "If",
            ["yes"],
            ["y"],
            "choice",
            then_branch=branch([node("Add", ["size", "size"], ["a"], "twice")], "a"),
            # Its inner tensor has the name of one around it, which it does not read.
            else_branch=branch([node("Tanh", ["x"], ["a"]), node("Add", ["a", "w"], ["b"])], "b"),
        ),
    ]
    constants = {"w": random((3,)), **constants}
    return from_proto(make_model(nodes, {"x": ("N", 3)}, ["y"], constants), "chosen")


@pytest.mark.parametrize("yes", [True, False])
def test_the_branch_that_a_constant_chooses(yes: bool) -> None:
    graph = chosen([], yes=np.array(yes))
    agree(graph, {"x": random((2, 3))}, 2)
    assert {step.params.op for step in bare(graph, 2).steps} == ({"unary", "binary"})
    assert len(bare(graph, 2).steps) == 2, "the other branch is no part of the plan"


def test_both_branches_and_a_choice_where_the_condition_is_computed() -> None:
    made = [
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Greater", ["sum", "zero"], ["yes"]),
    ]
    graph = chosen(made, zero=np.float32(0))
    for x in (np.full((2, 3), 0.5, np.float32), np.full((2, 3), -0.5, np.float32)):
        agree(graph, {"x": x}, 2)
    # Taken out of its model it is given what its branches read of the tensors around it.
    part = next(group for group in groups(graph, 2) if "choice" in group.nodes)
    assert set(part.inputs) >= {"size", "x"}
    taken = extract(graph, part.nodes, 2)
    feeds = {"x": random((2, 3)), "size": random((2, 3)), "yes": np.array(True)}
    agree(taken, {info.name: feeds[info.name] for info in taken.inputs}, taken.fixed_batch or 2)


def test_branches_of_different_shapes_are_refused_where_the_condition_is_computed() -> None:
    made = [node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Greater", ["sum", "zero"], ["yes"])]
    nodes = [
        *made,
        node(
            "If",
            ["yes"],
            ["y"],
            "choice",
            then_branch=branch([node("Identity", ["x"], ["a"])], "a"),
            else_branch=branch([node("Concat", ["x", "x"], ["b"], axis=1)], "b"),
        ),
    ]
    graph = from_proto(make_model(nodes, {"x": (2, 3)}, ["y"], {"zero": np.float32(0)}), "shapes")
    said = r"node 'choice' \(If\): its condition is computed, and its branches give float32 of shape \(2, 3\)"
    with pytest.raises(UnsupportedError, match=said):
        bare(graph, 2)


def test_a_later_output_of_a_node_may_be_what_a_branch_gives() -> None:
    def last(direction: str) -> onnx.GraphProto:
        made = node("GRU", ["x", "w", "r"], ["", "last"], hidden_size=2, direction=direction)
        return branch([made], "last", 3)

    made = [node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Greater", ["sum", "zero"], ["yes"])]
    constants = {"zero": np.float32(0), "w": random((1, 6, 3)), "r": random((1, 6, 2), 1)}
    nodes = [
        *made,
        node("If", ["yes"], ["y"], "choice", then_branch=last("forward"), else_branch=last("reverse")),
    ]
    graph = from_proto(make_model(nodes, {"x": (4, 2, 3)}, ["y"], constants, ranks={"y": 3}), "states")
    agree(graph, {"x": random((4, 2, 3))}, 4)


def test_constants_of_two_branches_may_have_one_name() -> None:
    def added(number: float) -> onnx.GraphProto:
        made = branch([node("Add", ["x", "b"], ["a"])], "a")
        made.initializer.append(numpy_helper.from_array(np.float32([number]), "b"))
        return made

    nodes = [
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Greater", ["sum", "zero"], ["yes"]),
        node("If", ["yes"], ["y"], "choice", then_branch=added(10), else_branch=added(20)),
    ]
    graph = from_proto(make_model(nodes, {"x": (2, 3)}, ["y"], {"zero": np.float32(0)}), "names")
    for x in (np.full((2, 3), 0.5, np.float32), np.full((2, 3), -0.5, np.float32)):
        agree(graph, {"x": x}, 2)


def loop(
    count: int,
    nodes: list[onnx.NodeProto],
    ends: Sequence[str] = ("on_out", "h_out", "told"),
    **constants: np.ndarray,
) -> Graph:
    """A loop that carries h, and gives what the body calls `told` at each turn."""
    on, h, told = ends
    body = helper.make_graph(
        nodes,
        "body",
        [value("i", [], TensorProto.INT64), value("on", [], TensorProto.BOOL), value("h", ["N", 3])],
        [value(on, [], TensorProto.BOOL), value(h, ["N", 3]), value(told, ["N", 3])],
    )
    outer = [node("Loop", ["count", "", "x"], ["last", "all"], "loop", body=body)]
    given = {"count": np.array(count), **constants}
    return from_proto(
        make_model(outer, {"x": (2, 3)}, ["last", "all"], given, ranks={"last": 2, "all": 3}), "loop"
    )


def test_a_loop_is_written_out_turn_by_turn() -> None:
    nodes = [
        node("Identity", ["on"], ["on_out"]),
        node("Gather", ["w", "i"], ["row"], axis=0),  # by the turn's number
        node("Add", ["h", "row"], ["number"]),
        node("Tanh", ["number"], ["h_out"]),
        node("Mul", ["h_out", "x"], ["told"]),  # x lies outside
    ]
    agree(loop(4, nodes, w=random((4, 3))), {"x": random((2, 3))}, 2)


def test_a_loop_ends_where_its_constant_condition_does() -> None:
    nodes = [
        node("Less", ["i", "two"], ["on_out"]),
        node("Add", ["h", "x"], ["h_out"]),
        node("Identity", ["h"], ["told"]),
    ]
    graph = loop(9, nodes, two=np.array(2))
    assert run_plan(graph, 2, {"x": random((2, 3))})["all"].shape == (3, 2, 3)
    agree(graph, {"x": random((2, 3))}, 2)


def test_an_if_within_a_loop_sees_its_turn() -> None:
    nodes = [
        node("Identity", ["on"], ["on_out"]),
        node("Equal", ["i", "one"], ["first"]),
        node(
            "If",
            ["first"],
            ["h_out"],
            then_branch=branch([node("Neg", ["h"], ["a"])], "a"),
            else_branch=branch([node("Add", ["h", "x"], ["a"])], "a"),
        ),
        node("Relu", ["h_out"], ["told"]),
    ]
    agree(loop(3, nodes, one=np.array(1)), {"x": random((2, 3))}, 2)


def test_loops_that_are_not_written_out_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = [
        node("Identity", ["on"], ["on_out"]),
        node("Tanh", ["h"], ["h_out"]),
        node("Identity", ["h"], ["told"]),
    ]
    with pytest.raises(UnsupportedError, match=r"node 'loop' \(Loop\): .*'all' would have no elements"):
        bare(loop(0, plain), 2)
    computed = [
        node("ReduceSum", ["h"], ["sum"], keepdims=0),
        node("Greater", ["sum", "zero"], ["on_out"]),
        *plain[1:],
    ]
    with pytest.raises(UnsupportedError, match="its condition after a turn must be constant"):
        bare(loop(3, computed, zero=np.float32(0)), 2)
    monkeypatch.setattr(written_out, "MOST_NODES", 20)
    for long in (loop(100, plain), loop(100, [], ("on", "h", "h"))):  # the second gives what it is given
        with pytest.raises(UnsupportedError, match="it stands for more than 20 nodes when it is written out"):
            bare(long, 2)
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("ReduceMax", ["counts"], ["most"], keepdims=0),
        *loop(1, plain).proto.graph.node,
    ]
    nodes[-1].input[0] = "most"
    model = make_model(
        nodes, {"x": (2, 3), "counts": (2,)}, ["last"], types={"counts": TensorProto.INT64}, opset=18
    )
    with pytest.raises(UnsupportedError, match="its trip count must be constant, and 'most' depends on"):
        bare(from_proto(model, "computed"), 2)


@few
@given(
    st.sampled_from([1, 2, 3, 4, 70]),  # more turns than one Concat takes
    st.sampled_from([0, 1]),
    st.integers(0, 1),
    st.sampled_from([0, 1, -1]),
    st.integers(0, 1),
)
def test_a_scan_goes_along_any_axis_both_ways(
    turns: int, axis: int, back: int, out_axis: int, out_back: int
) -> None:
    body = helper.make_graph(
        [
            node("Add", ["h", "x"], ["sum"]),  # names that are also those of tensors around it
            node("Tanh", ["sum"], ["h_out"]),
            node("Mul", ["h_out", "w"], ["told"]),
        ],
        "body",
        [value("h", [3]), value("x", [3])],
        [value("h_out", [3]), value("told", [3])],
    )
    scan = node(
        "Scan",
        ["first", "x"],
        ["last", "all"],
        "scan",
        body=body,
        num_scan_inputs=1,
        scan_input_axes=[axis],
        scan_input_directions=[back],
        scan_output_axes=[out_axis],
        scan_output_directions=[out_back],
    )
    shape = (turns, 3) if axis == 0 else (3, turns)
    constants = {"w": random((3,), 1), "first": random((3,), 2)}
    model = make_model([scan], {"x": shape}, ["last", "all"], constants, ranks={"last": 1, "all": 2})
    agree(from_proto(model, "scan"), {"x": random(shape)}, shape[0])


def test_functions_of_a_model_are_called_with_their_attributes() -> None:
    scaled = helper.make_function(
        "own",
        "Scaled",
        ["a", "b"],
        ["c"],
        [
            node("Constant", [], ["s"], value_float=0.0),
            node("Mul", ["a", "s"], ["d"]),
            node("Add", ["d", "b"], ["c"]),
        ],
        [helper.make_opsetid("", 17)],
        attributes=["by"],
    )
    scaled.node[0].attribute[0].ref_attr_name, scaled.node[0].attribute[0].f = "by", 0.0
    twice = helper.make_function(
        "own",
        "Twice",
        ["a"],
        ["c"],
        [node("Scaled", ["a", "a"], ["c"], domain="own", by=3.0)],
        [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)],
    )
    nodes = [
        node("Scaled", ["x", "w"], ["d"], "one", domain="own", by=0.5),
        node("Twice", ["d"], ["y"], "two", domain="own"),
    ]
    proto = make_model(nodes, {"x": ("N", 3)}, ["y"], {"w": random((3,))})
    proto.functions.extend([scaled, twice])
    proto.opset_import.append(helper.make_opsetid("own", 1))
    agree(from_proto(proto, "functions"), {"x": random((2, 3))}, 2)


def test_a_product_of_whole_numbers_within_a_function_is_a_step_of_the_call() -> None:
    weights = np.arange(12, dtype=np.int8).reshape(4, 3)
    nodes = [
        *(node("Constant", [], [name], value_float=0.5) for name in ("s", "ws")),
        node("Constant", [], ["z"], value=numpy_helper.from_array(np.array(3, np.uint8))),
        node("Constant", [], ["wz"], value=numpy_helper.from_array(np.array(0, np.int8))),
        node("Constant", [], ["w"], value=numpy_helper.from_array(weights)),
        node("DequantizeLinear", ["q", "s", "z"], ["x"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wide"]),
        node("MatMul", ["x", "wide"], ["y"]),
    ]
    product = helper.make_function("own", "Product", ["q"], ["y"], nodes, [helper.make_opsetid("", 17)])
    call = node("Product", ["q"], ["y"], "call", domain="own")
    proto = make_model([call], {"q": ("N", 4)}, ["y"], types={"q": TensorProto.UINT8})
    proto.functions.append(product)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    graph = from_proto(proto, "product")
    q = np.array([[3, 4, 5, 6]], np.uint8)
    np.testing.assert_array_equal(run_plan(graph, 1, {"q": q})["y"], (q - 3.0) @ weights / 4)
    assert [step.op for step in bare(graph, 1).steps] == ["qgemm"]
    assert [group.nodes for group in groups(graph, 1)] == [("call",)]


def test_of_functions_of_one_name_the_one_that_is_meant_is_called() -> None:
    proto = make_model([], {"x": ("N", 3)}, ["y"])
    for kind, read, made in (("Tanh", "x", "t"), ("Exp", "t", "y")):
        body = [node(kind, ["a"], ["b"])]
        own = helper.make_function(
            "own", "F", ["a"], ["b"], body, [helper.make_opsetid("", 17)], overload=kind
        )
        proto.functions.append(own)
        proto.graph.node.append(node("F", [read], [made], domain="own", overload=kind))
    proto.opset_import.append(helper.make_opsetid("own", 1))
    proto.ir_version = 10
    agree(from_proto(proto, "overloads"), {"x": random((2, 3))}, 2)


def test_nodes_of_a_function_may_have_one_name() -> None:
    nodes = [
        node("Constant", [], ["k"], value_ints=[2]),
        node("TopK", ["a", "k"], ["most", "at"], "largest"),
        node("Neg", ["a"], ["b"], "largest"),
        node("TopK", ["b", "k"], ["least", "under"], "largest"),
        node("Sub", ["most", "least"], ["c"], "largest"),
    ]
    ends = helper.make_function("own", "Ends", ["a"], ["c"], nodes, [helper.make_opsetid("", 17)])
    proto = make_model([node("Ends", ["x"], ["y"], "ends", domain="own")], {"x": ("N", 3)}, ["y"])
    proto.functions.append(ends)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    x = np.array([[1, 3, 2]], np.float32)
    np.testing.assert_array_equal(run_plan(from_proto(proto, "ends"), 1, {"x": x})["y"], [[4, 4]])


@pytest.mark.sampled
def test_graphs_within_each_other_are_answered_as_onnx_runtime_does() -> None:
    first = sampling.number("graphs within each other")
    for seed in range(first, first + (300 if sampling.whole() else 12)):
        assert not drawn_control.wrong(seed), seed


@few
@given(
    st.integers(1, 5),
    st.integers(2, 5),
    st.sampled_from(["mean", "sum", "none"]),
    st.booleans(),
    st.sampled_from([None, 1]),
)
def test_an_operator_that_onnx_defines_by_others(
    n: int, classes: int, reduction: str, weighted: bool, ignored: int | None
) -> None:
    labels = np.random.default_rng(n).integers(0, classes, n)
    if ignored is not None:
        labels[0] = ignored
    more = {"w": np.abs(random((classes,), 1)) + np.float32(0.1)} if weighted else {}
    attributes = {} if ignored is None else {"ignore_index": ignored}
    made = node(
        "SoftmaxCrossEntropyLoss", ["x", "t", *more], ["y"], "loss", reduction=reduction, **attributes
    )
    rank = 1 if reduction == "none" else 0
    if reduction == "mean" and (labels == ignored).all():
        return  # nothing counts, and the mean is 0 / 0
    proto = make_model([made], {"x": (n, classes), "t": (n,)}, ["y"], more, ranks={"y": rank}, types={"t": 7})
    feeds = {"x": random((n, classes)), "t": labels}
    graph = from_proto(proto, "loss")
    (expected,) = ReferenceEvaluator(graph.whole_proto()).run(None, feeds)
    ours = run_plan(graph, n, feeds)["y"]
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


def test_what_a_function_needs_and_the_engine_lacks_is_named() -> None:
    made = node("Bernoulli", ["x"], ["y"], "drawn", seed=1.0)
    graph = from_proto(make_model([made], {"x": ("N", 3)}, ["y"]), "random")
    with pytest.raises(UnsupportedError, match="RandomUniformLike"):
        bare(graph, 2)
