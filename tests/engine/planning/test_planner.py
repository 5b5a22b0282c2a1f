"""Whole graphs through fold, fuse, rung choice and memory, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from engine.backend import Options
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.graph.memory import Life, place
from engine.planning.groups import groups
from engine.planning.planner import Chosen, plan
from kernels.errors import InputError, UnsupportedError
from kernels.ops.binary import Binary
from tests.engine.harness import agree, bare, check_memory, make_model, random, run_plan

CHANNELS = 3
SHAPE = ("N", CHANNELS, 5, 4)
CONSTANTS = {
    "w1": random((CHANNELS, CHANNELS, 1, 1), 1),
    "w3": random((CHANNELS, CHANNELS, 3, 3), 2) / 5,
    "bias": random((CHANNELS,), 3),
    "column": random((CHANNELS, 1, 1), 4),
    "scalar": np.array([0.5], np.float32),
    "variance": np.abs(random((CHANNELS,), 5)) + 0.5,
    "flat": np.array([0, -1], np.int64),
    "back": np.array([-1, CHANNELS, 5, 4], np.int64),
}
# Every one of these keeps the shape, so that any may follow any other.
STEPS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "Conv:plain": (["w1"], {}),
    "Conv:bias": (["w3", "bias"], {"pads": [1, 1, 1, 1]}),
    "Add:column": (["column"], {}),
    "Sub:column": (["column"], {}),
    "Mul:column": (["column"], {}),
    "Mul:scalar": (["scalar"], {}),
    "BatchNormalization": (["bias", "bias", "bias", "variance"], {}),
    "MaxPool": ([], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "Sigmoid": ([], {}),
    "Tanh": ([], {}),
    "Identity": ([], {}),
    "Dropout": ([], {}),
    "Reshape": (["flat"], {}),
}


@st.composite
def graphs(draw: Any) -> Graph:
    """A random acyclic graph of up to ten nodes over tensors of one shape, some given out."""
    nodes, made = [], ["x", "z"]
    for index in range(draw(st.integers(1, 10))):
        kind = draw(st.sampled_from([*STEPS, "Add", "Sub", "Mul"]))
        source = draw(st.sampled_from(made))
        output = f"t{index}"
        if kind in STEPS:
            constants, attributes = STEPS[kind]
            target = f"{output}:flat" if kind == "Reshape" else output
            nodes.append(helper.make_node(kind.split(":")[0], [source, *constants], [target], **attributes))
            if kind == "Reshape":
                nodes.append(helper.make_node("Reshape", [target, "back"], [output]))
        else:
            nodes.append(helper.make_node(kind, [source, draw(st.sampled_from(made))], [output]))
        made.append(output)
    outputs = draw(st.lists(st.sampled_from(made[2:]), min_size=1, max_size=3, unique=True))
    ranks = dict.fromkeys(outputs, 4)
    return from_proto(make_model(nodes, {"x": SHAPE, "z": SHAPE}, outputs, CONSTANTS, ranks=ranks), "random")


@settings(max_examples=24, deadline=None)
@given(graphs(), st.integers(1, 3))
def test_random_graphs(graph: Graph, batch: int) -> None:
    """Values and shapes as ONNX Runtime's, no live tensor overwritten, every node in one group at most."""
    feeds = {"x": random((batch, *SHAPE[1:]), 7), "z": random((batch, *SHAPE[1:]), 8)}
    agree(graph, feeds, batch, tolerance=1e-4)
    made = bare(graph, batch)
    found = groups(graph, batch)
    covered = [name for group in found for name in group.nodes]
    assert len(covered) == len(set(covered))
    assert {name for step in made.steps for name in step.nodes} <= set(covered)
    computed = [group for group in found if group.nbytes]
    assert sum(group.flops for group in computed) >= sum(
        step.params.flops for step in made.steps if step.op != "unary"
    )


def network() -> Graph:
    """Conv → BatchNormalization → Relu → Conv → Add → Tanh → Flatten → MatMul → Add → Sigmoid."""
    nodes = [
        helper.make_node("Conv", ["x", "w3", "bias"], ["a"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["a", "bias", "bias", "bias", "variance"], ["b"], "norm1"),
        helper.make_node("Relu", ["b"], ["c"], "relu1"),
        helper.make_node("Conv", ["c", "w1"], ["d"], "conv2"),
        helper.make_node("Add", ["column", "d"], ["e"], "add2"),
        helper.make_node("Tanh", ["e"], ["f"], "tanh2"),
        helper.make_node("Flatten", ["f"], ["g"], "flatten"),
        helper.make_node("MatMul", ["g", "m"], ["h"], "matmul"),
        helper.make_node("Add", ["h", "v"], ["i"], "add3"),
        helper.make_node("Sigmoid", ["i"], ["y"], "sigmoid"),
    ]
    constants = {**CONSTANTS, "m": random((CHANNELS * 20, 6), 8), "v": random((1, 6), 9)}
    return from_proto(make_model(nodes, {"x": SHAPE}, ["y"], constants), "network")


def test_what_a_step_can_do_on_its_way_out_is_one_step() -> None:
    graph = network()
    made = bare(graph, 2)
    assert [step.nodes for step in made.steps] == [
        ("conv1", "norm1", "relu1"),
        ("conv2", "add2", "tanh2"),
        ("matmul", "add3", "sigmoid"),
    ]
    assert [(step.params.bias, step.params.activation) for step in made.steps] == [
        (True, "relu"),
        (True, "tanh"),
        (True, "sigmoid"),
    ]
    assert made.aliases == {"g": "f"}
    agree(graph, {"x": random((2, CHANNELS, 5, 4))}, 2)


def test_a_tensor_that_is_given_out_or_read_twice_is_not_fused_away() -> None:
    graph = network()
    graph.proto.graph.output.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [None] * 4))
    seen = from_proto(graph.proto, "seen")
    assert ("conv1", "norm1") in [step.nodes for step in bare(seen, 1).steps]
    agree(seen, {"x": random((1, CHANNELS, 5, 4))}, 1)


def test_batch_normalization_without_a_convolution_is_one_step() -> None:
    node = helper.make_node("BatchNormalization", ["x", "bias", "bias", "bias", "variance"], ["b"], "norm")
    relu = helper.make_node("Relu", ["b"], ["y"], "relu")
    graph = from_proto(make_model([node, relu], {"x": SHAPE}, ["y"], CONSTANTS, ranks={"y": 4}))
    assert [(step.name, step.nodes) for step in bare(graph, 2).steps] == [("norm", ("norm", "relu"))]
    (group,) = groups(graph, 2)
    assert group.nodes == ("norm", "relu")
    assert (group.inputs, group.output, group.shape) == (("x",), "y", (2, *SHAPE[1:]))
    assert group.parameters == 2 * CHANNELS


def test_a_node_of_two_kernels_is_one_group_of_two_steps() -> None:
    mean = helper.make_node("Mean", ["x", "x"], ["m"], "mean")
    relu = helper.make_node("Relu", ["m"], ["y"], "relu")
    graph = from_proto(make_model([mean, relu], {"x": SHAPE}, ["y"], ranks={"y": 4}))
    assert [(step.name, step.nodes) for step in bare(graph, 2).steps] == [
        ("mean", ("mean",)),
        ("mean:2", ("mean", "relu")),
    ]
    (group,) = groups(graph, 2)
    assert group.nodes == ("mean", "relu")


def test_shape_arithmetic_is_folded() -> None:
    """What PyTorch exports for x.view(x.size(0), -1): Shape, Gather, Unsqueeze, Concat, Reshape."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Constant", [], ["zero"], value_int=0),
        helper.make_node("Gather", ["shape", "zero"], ["size"], axis=0),
        helper.make_node("Constant", [], ["axes"], value_ints=[0]),
        helper.make_node("Unsqueeze", ["size", "axes"], ["first"]),
        helper.make_node("Concat", ["first", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["x", "wanted"], ["flat"]),
        helper.make_node("Relu", ["flat"], ["y"]),
    ]
    graph = from_proto(make_model(nodes, {"x": SHAPE}, ["y"], {"rest": np.array([-1], np.int64)}))
    for batch in (1, 3):
        assert [step.op for step in bare(graph, batch).steps] == ["unary"]
        agree(graph, {"x": random((batch, *SHAPE[1:]))}, batch)


def test_outputs_that_are_views_of_inputs_or_constants_have_a_place_of_their_own() -> None:
    nodes = [
        helper.make_node("Identity", ["x"], ["same"], "same"),
        helper.make_node("Flatten", ["same"], ["flattened"], "flat"),
        helper.make_node("Identity", ["bias"], ["constant"], "constant"),
        helper.make_node("Relu", ["x"], ["r"], "relu"),
        helper.make_node("Flatten", ["r"], ["r_flat"], "r_flat"),
        helper.make_node("Add", ["flattened", "scalar"], ["y"], "add"),
    ]
    outputs = ["same", "flattened", "constant", "r", "r_flat", "y"]
    ranks = {"same": 4, "constant": 1, "r": 4}
    graph = from_proto(make_model(nodes, {"x": SHAPE}, outputs, CONSTANTS, ranks=ranks))
    made = bare(graph, 2)
    assert made.holder("r_flat") == "r"
    assert {"same", "flattened", "constant", "r"} <= made.placements.keys()
    agree(graph, {"x": random((2, *SHAPE[1:]))}, 2)


def test_an_initializer_can_be_an_output_and_read_by_a_node() -> None:
    add = helper.make_node("Mul", ["x", "scalar"], ["y"])
    graph = from_proto(make_model([add], {"x": ("N", 3)}, ["scalar", "y"], CONSTANTS, ranks={"scalar": 1}))
    x = random((2, 3))
    outputs = run_plan(graph, 2, {"x": x})
    np.testing.assert_array_equal(outputs["scalar"], CONSTANTS["scalar"])
    np.testing.assert_array_equal(outputs["y"], x * np.float32(0.5))


def test_nodes_that_no_output_needs_are_dropped() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"], "used"), helper.make_node("Tanh", ["x"], ["u"], "unused")]
    graph = from_proto(make_model(nodes, {"x": ("N", 3)}, ["y"]))
    assert [step.nodes for step in bare(graph, 1).steps] == [("used",)]
    assert [group.nodes for group in groups(graph, 1)] == [("used",)]


@pytest.mark.parametrize("batch", [0, -1, 10**9, 1.5, True, None])
def test_a_batch_size_out_of_range_is_bad_input(batch: Any) -> None:
    with pytest.raises(InputError, match=r"batch size .* is out of range: .* from 1 to 16,777,216"):
        plan(network(), batch)
    with pytest.raises(InputError, match="out of range"):
        groups(network(), batch)


def test_a_model_for_one_batch_size_refuses_others() -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    graph = from_proto(make_model([node], {"x": (3, 4)}, ["y"]), "fixed")
    assert bare(graph, 3).batch == 3
    with pytest.raises(
        UnsupportedError, match=r"'fixed' is made for batch size 3 alone .*batch size 4 was asked"
    ):
        plan(graph, 4)
    with pytest.raises(UnsupportedError, match="made for batch size 3"):
        groups(graph, 4)


def test_an_axis_beside_the_batch_needs_a_size() -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    graph = from_proto(make_model([node], {"x": ("N", "width")}, ["y"]))
    with pytest.raises(UnsupportedError, match=r"shape \(N, width\), .* as with --dim width=128"):
        bare(graph, 4)


def test_precisions_the_engine_lacks_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="precision fp16 is not offered by the engine on cpu"):
        plan(network(), 1, "cpu", "fp16")
    with pytest.raises(InputError, match="precision 'fp8' is unknown: there are fp32"):
        plan(network(), 1, "cuda", "fp8")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_rungs_are_chosen_by_node_name_else_the_highest(device: str) -> None:
    from kernels import registry

    conv = registry.rungs(device, "conv")
    made = plan(network(), 1, device, options=Options(rungs={"add2": conv[0].name}))
    assert made.steps[1].rung == conv[0].name
    params = made.steps[0].params
    able = [r for r in registry.candidates(device, "conv") if r.refusal(params) is None]
    taking = [r.name for r in able if r.suits(params)]
    assert made.steps[0].rung == taking[0]
    with pytest.raises(InputError, match=r"no such node \(did you mean 'conv1'"):
        plan(network(), 1, device, options=Options(rungs={"conv_1": conv[0].name}))
    with pytest.raises(InputError, match="naiv"):
        plan(network(), 1, device, options=Options(rungs={"conv1": "naivv"}))


def test_workspace_is_the_largest_of_any_step() -> None:
    sizes = {"conv": 1000, "gemm": 3000}
    made = plan(
        network(),
        1,
        choose=lambda d, p, n, w, a: Chosen(""),
        workspace=lambda step: sizes[step.op],
    )
    assert made.workspace_nbytes == 3000
    assert made.peak_nbytes == made.weights_nbytes + made.arena_nbytes + 3000


def test_a_chain_needs_no_more_than_its_widest_pair() -> None:
    nodes = [helper.make_node("MaxPool", [f"t{i}"], [f"t{i + 1}"], kernel_shape=[1, 1]) for i in range(9)]
    graph = from_proto(make_model(nodes, {"t0": (1, 1, 8, 8)}, ["t9"], ranks={"t9": 4}))
    made = bare(graph, 1)
    assert made.arena_nbytes == 3 * 256  # the input keeps its own, two take turns
    check_memory(made)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 2000), st.integers(0, 8), st.integers(0, 8)), max_size=12))
def test_tensors_alive_together_never_share_bytes(drawn: list[tuple[int, int, int]]) -> None:
    tensors = {f"t{i}": Life(n, min(a, b), max(a, b)) for i, (n, a, b) in enumerate(drawn)}
    placements, arena = place(tensors)
    assert arena <= sum(-(-life.nbytes // 256) * 256 for life in tensors.values())
    for one, life in tensors.items():
        assert placements[one].offset % 256 == 0
        assert placements[one].offset + life.nbytes <= arena
        for two, other in tensors.items():
            if one != two and life.first <= other.last and other.first <= life.last:
                ends = [placements[name].offset + tensors[name].nbytes for name in (one, two)]
                assert ends[0] <= placements[two].offset or ends[1] <= placements[one].offset


def test_binary_axes_are_merged() -> None:
    node = helper.make_node("Add", ["x", "column"], ["y"])
    graph = from_proto(make_model([node], {"x": SHAPE}, ["y"], CONSTANTS, ranks={"y": 4}))
    assert bare(graph, 2).steps[0].params == Binary("add", (2, 3, 20), (60, 20, 1), (0, 1, 0))


def test_the_course_net_by_path(data_dir: Path) -> None:
    graph = from_proto(onnx.load(data_dir / "onnx" / "mnist-8.onnx"), "mnist-8")
    made = bare(graph, 1)
    assert [step.op for step in made.steps] == ["conv", "pool", "conv", "pool", "gemm"]
    assert [step.params.activation for step in made.steps if step.op == "conv"] == ["relu", "relu"]
    agree(graph, {"Input3": random((1, 1, 28, 28)) * 50}, 1, tolerance=1e-4)


@pytest.mark.parametrize(("op", "part"), [("Mul", "s:weight"), ("Add", "s:bias")])
def test_a_tensor_of_the_model_may_be_called_as_a_factor_that_is_made_in_fusing(op: str, part: str) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node(op, ["c", "channels"], ["s"]),
        helper.make_node("Tanh", ["s"], ["t"]),
        helper.make_node("Mul", ["t", part], ["y"]),
    ]
    weights = {"w": random((4, 2, 3, 3)), "channels": random((4, 1, 1), 2), part: random((1, 1, 4, 3), 9)}
    graph = from_proto(make_model(nodes, {"x": ("N", 2, 6, 5)}, ["y"], weights, ranks={"y": 4}), "net")
    agree(graph, {"x": random((3, 2, 6, 5))}, 3)
