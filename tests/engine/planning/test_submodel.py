"""Groups, the models cut out of them, inner tensors as outputs, and float16."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto, load
from engine.graph.skeleton import skeleton
from engine.ort.precision import half, to_fp16
from engine.planning.groups import groups
from engine.planning.submodel import extract, with_outputs
from kernels.errors import InputError, UnsupportedError
from tests.engine.harness import agree, bare, make_model, random, run_ort
from tests.engine.planning.test_planner import CONSTANTS, SHAPE, network

BATCH = 2
FEEDS = {"x": random((BATCH, *SHAPE[1:]))}
ML = "ai.onnx.ml"


def with_unsupported() -> Graph:
    """Conv → LabelEncoder → Relu → Concat with itself; LabelEncoder is nothing our engine runs."""
    nodes = [
        helper.make_node("Conv", ["x", "w3", "bias"], ["a"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node(
            "LabelEncoder", ["a"], ["b"], "labels", domain=ML, keys_floats=[0.5], values_floats=[1.0]
        ),
        helper.make_node("Relu", ["b"], ["c"], "relu"),
        helper.make_node("Concat", ["c", "c"], ["y"], "concat", axis=1),
    ]
    model = make_model(nodes, {"x": SHAPE}, ["y"], CONSTANTS, ranks={"y": 4})
    model.opset_import.append(helper.make_opsetid(ML, 2))
    return from_proto(model, "exotic")


@pytest.mark.parametrize("graph", [network(), with_unsupported()], ids=["network", "unsupported"])
def test_groups_cut_out_and_chained_give_the_whole(graph: Graph) -> None:
    found = groups(graph, BATCH)
    whole = with_outputs(graph, [group.output for group in found])
    assert whole.outputs[0] == graph.outputs[0]
    onnx.checker.check_model(whole.whole_proto())
    golden = {**FEEDS, **run_ort(whole, FEEDS)}
    for group in found:
        part = extract(graph, group.nodes, BATCH)
        onnx.checker.check_model(part.whole_proto(), full_check=True)
        assert tuple(info.name for info in part.inputs) == group.inputs
        assert tuple(info.name for info in part.outputs) == (group.output,)
        assert part.outputs[0].shape == group.shape == golden[group.output].shape
        result = run_ort(part, {name: golden[name] for name in group.inputs})
        np.testing.assert_allclose(result[group.output], golden[group.output], rtol=1e-5, atol=1e-6)


def test_groups_of_a_model() -> None:
    found = groups(network(), BATCH)
    assert [group.nodes for group in found] == [
        ("conv1", "norm1", "relu1"),
        ("conv2", "add2", "tanh2"),
        ("flatten",),
        ("matmul", "add3", "sigmoid"),
    ]
    conv, _, flatten, matmul = found
    assert (conv.op_type, conv.parameters) == ("Conv", 3 * 3 * 9 + 3 + 2 * 3)
    assert conv.flops == 2 * BATCH * 3 * 20 * 3 * 9
    assert (flatten.flops, flatten.nbytes, flatten.shape) == (0, 0, (BATCH, 60))
    assert (matmul.flops, matmul.parameters) == (2 * BATCH * 60 * 6, 60 * 6 + 6)


def test_a_model_the_engine_refuses_has_one_group_a_node() -> None:
    found = groups(with_unsupported(), BATCH)
    assert [group.nodes for group in found] == [("conv",), ("labels",), ("relu",), ("concat",)]
    assert [group.shape for group in found] == [(BATCH, 3, 5, 4)] * 3 + [(BATCH, 6, 5, 4)]
    assert found[0].flops > 0
    assert found[1].flops == 0


def test_one_group_plans_as_one_step() -> None:
    graph = network()
    for group in groups(graph, BATCH):
        part = extract(graph, group.nodes, BATCH)
        assert part.fixed_batch == BATCH
        assert len(bare(part, BATCH).steps) == 1
        agree(part, {info.name: random(info.shape) for info in part.inputs}, BATCH)


def test_names_that_are_not_there() -> None:
    with pytest.raises(InputError, match=r"no node 'conv3' \(did you mean 'conv"):
        extract(network(), ["conv3"], 1)
    with pytest.raises(InputError, match="no inner tensor 'nothing'"):
        with_outputs(network(), ["nothing"])


def test_a_part_of_an_old_model_is_valid(data_dir: Path) -> None:
    """Opset 8, IR 3, and a weight that comes out of a Reshape of constants."""
    graph = load(data_dir / "onnx" / "mnist-8.onnx")
    *_, last = groups(graph, 1)
    assert last.nodes == ("Times212", "Plus214")
    part = extract(graph, last.nodes, 1)
    onnx.checker.check_model(part.whole_proto(), full_check=True)
    assert part.initializers.keys() == {"Parameter193_reshape1", "Parameter194"}


# ------------------------------------------------------------------------------------------------ float16


def converted(graph: Graph) -> Graph:
    result = to_fp16(graph)
    onnx.checker.check_model(result.whole_proto(), full_check=True)
    assert [(i.name, i.dtype) for i in result.inputs] == [(i.name, i.dtype) for i in graph.inputs]
    assert [(o.name, o.dtype) for o in result.outputs] == [(o.name, o.dtype) for o in graph.outputs]
    return result


def test_fp16_computes_in_float16_between_float32_ends() -> None:
    graph = network()
    result = converted(graph)
    assert {array.dtype.name for array in result.initializers.values() if array.dtype.kind == "f"} == {
        "float16"
    }
    inferred = onnx.shape_inference.infer_shapes(skeleton(result.proto))
    types = {v.name: v.type.tensor_type.elem_type for v in inferred.graph.value_info}
    assert types["c"] == types["g"] == TensorProto.FLOAT16
    assert {node.name for node in graph.nodes} <= {node.name for node in result.nodes}
    ours, theirs = run_ort(result, FEEDS)["y"], run_ort(graph, FEEDS)["y"]
    assert 0 < np.abs(ours - theirs).max() < 1e-2


def test_fp16_where_types_are_said_or_cannot_be_had() -> None:
    """Cast names its target, ConstantOfShape carries its value, Resize takes its scales in float32 alone, and
    an inner tensor is an output too."""
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], "cast", to=TensorProto.DOUBLE),
        helper.make_node("Cast", ["wide"], ["back"], "back", to=TensorProto.FLOAT),
        helper.make_node("Resize", ["back", "", "scales"], ["large"], "resize", mode="nearest"),
        helper.make_node("Relu", ["large"], ["inner"], "relu"),
        helper.make_node(
            "ConstantOfShape", ["one"], ["ones"], "ones", value=helper.make_tensor("v", 1, [1], [3.0])
        ),
        helper.make_node("Add", ["inner", "ones"], ["sum"], "add"),
        helper.make_node("Identity", ["scales"], ["given"], "given"),
        helper.make_node("LRN", ["sum"], ["y"], "lrn", size=3, alpha=1e-4, beta=0.75, bias=2.0),
    ]
    constants = {"scales": np.array([1, 1, 2, 2], np.float32), "one": np.array([1], np.int64)}
    ranks = {"inner": 4, "y": 4, "given": 1}
    graph = from_proto(make_model(nodes, {"x": SHAPE}, ["inner", "y", "given"], constants, ranks=ranks))
    result = converted(graph)
    assert result.initializers["scales"].dtype == np.float32
    lrn = next(node for node in result.nodes if node.name == "lrn")
    assert lrn.attributes["alpha"] == pytest.approx(1e-4)
    ours, theirs = run_ort(result, FEEDS), run_ort(graph, FEEDS)
    for name, expected in theirs.items():
        np.testing.assert_allclose(ours[name], expected, rtol=5e-3, atol=5e-3)


def test_fp16_keeps_finite_weights_finite() -> None:
    values = np.array([1e6, -1e6, np.inf, -np.inf, np.nan, 1.5], np.float32)
    np.testing.assert_array_equal(
        half(values), np.array([65504, -65504, np.inf, -np.inf, np.nan, 1.5], np.float16)
    )


def test_fp16_of_an_old_model(data_dir: Path) -> None:
    graph = load(data_dir / "onnx" / "mnist-8.onnx")
    image = {"Input3": random((1, 1, 28, 28)) * 50}
    ours, theirs = run_ort(converted(graph), image), run_ort(graph, image)
    name = graph.outputs[0].name
    assert np.linalg.norm(ours[name] - theirs[name]) < 5e-3 * np.linalg.norm(theirs[name])


def test_fp16_does_not_enter_subgraphs() -> None:
    def branch(op_type: str) -> onnx.GraphProto:
        info = helper.make_tensor_value_info(op_type, TensorProto.FLOAT, [None, 2])
        return helper.make_graph([helper.make_node(op_type, ["x"], [op_type])], op_type, [], [info])

    node = helper.make_node(
        "If", ["yes"], ["y"], "if", then_branch=branch("Relu"), else_branch=branch("Tanh")
    )
    graph = from_proto(make_model([node], {"x": ("N", 2)}, ["y"], {"yes": np.array(True)}))
    with pytest.raises(UnsupportedError, match=r"node 'if' \(If\) .* has subgraphs"):
        to_fp16(graph)
    agree(graph, {"x": random((3, 2))}, 3)
