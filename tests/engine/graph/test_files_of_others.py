"""Files as other programs write them: read for whoever can run them, refused by us with the true reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from bench.measure.answers import oracle
from engine import backends
from engine.graph.graph import Graph
from engine.graph.importer import from_proto, load
from engine.planning import groups, submodel
from kernels.errors import ModelError, UnsupportedError
from tests.engine.harness import agree, bare, make_model, random

few = settings(max_examples=8, deadline=None)


def ort(graph: Graph, x: np.ndarray) -> dict[str, np.ndarray]:
    session = backends.get("ort-cpu").prepare(graph, len(x))
    try:
        session.bind({"x": x})
        session.run()
        return session.fetch()
    finally:
        session.close()


def branch(*nodes: onnx.NodeProto) -> onnx.GraphProto:
    out = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)
    return helper.make_graph(list(nodes), "branch", [], [out])


def with_if(before: int, after: int, shared: bool) -> Graph:
    """A chain in front of an If, whose branches read from around them, and one behind it. shared: they
    call an inner tensor what the graph around calls its answer."""
    inner = f"t{before + after + 1}" if shared else "inner"
    chosen = helper.make_node("Add", [f"t{before}", "k"], [inner])
    other = helper.make_node("Mul", [f"t{before}", "x"], [inner])
    yes, no = (branch(node, helper.make_node("Neg", [inner], ["z"])) for node in (chosen, other))
    chain = [helper.make_node("Tanh", [f"t{i}" if i else "x"], [f"t{i + 1}"], f"a{i}") for i in range(before)]
    if not before:
        chain = [helper.make_node("Identity", ["x"], ["t0"], "same")]
    made = helper.make_node("If", ["c"], [f"t{before + 1}"], "if", then_branch=yes, else_branch=no)
    last = [
        helper.make_node("Sigmoid", [f"t{before + 1 + i}"], [f"t{before + 2 + i}"], f"b{i}")
        for i in range(after)
    ]
    test = [
        helper.make_node("ReduceSum", ["x"], ["s"], "sum", keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"], "test"),
    ]
    output = f"t{before + after + 1}"
    constants = {"k": np.float32([2.0]), "zero": np.float32(0)}
    return from_proto(make_model([*chain, *test, made, *last], {"x": ("N", 3)}, [output], constants))


@few
@given(st.integers(0, 3), st.integers(0, 3), st.booleans(), st.integers(0, 5))
def test_an_if_reads_what_is_around_it(before: int, after: int, shared: bool, seed: int) -> None:
    graph = with_if(before, after, shared)
    x, name = random((2, 3), seed), graph.outputs[0].name
    right = oracle.run(graph, {"x": x}, [name])[name]
    np.testing.assert_allclose(ort(graph, x)[name], right, rtol=1e-5, atol=1e-6)
    assert set(graph.by_name["if"].captured) == {f"t{before}", "k", "x"}
    parts = groups.groups(graph, 2)
    assert {node for part in parts for node in part.nodes} >= {"if", *(f"a{i}" for i in range(before))}
    alone = submodel.extract(graph, ["if"], 2)
    assert {info.name for info in alone.inputs} == {"c", "x", f"t{before}"}
    both = submodel.side_by_side(graph, [part.nodes for part in parts], 2)
    assert len(both.graph.nodes) == sum(len(part.nodes) for part in parts)


@pytest.mark.parametrize("shared", [True, False])
def test_a_body_may_call_its_own_what_the_graph_around_calls_another(shared: bool) -> None:
    inner = "y" if shared else "sum"
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Add", ["before", "e"], [inner]),
            helper.make_node("Identity", [inner], ["after"]),
            helper.make_node("Identity", [inner], ["out"]),
        ],
        "body",
        [info("before", TensorProto.FLOAT, [4]), info("e", TensorProto.FLOAT, [4])],
        [info("after", TensorProto.FLOAT, [4]), info("out", TensorProto.FLOAT, [4])],
    )
    scan = helper.make_node("Scan", ["s0", "x"], ["last", "y"], "scan", body=body, num_scan_inputs=1)
    graph = from_proto(make_model([scan], {"x": ("N", 4)}, ["y"], {"s0": np.zeros(4, np.float32)}))
    x = random((3, 4))
    np.testing.assert_allclose(ort(graph, x)["y"], np.cumsum(x, axis=0), rtol=1e-6)
    agree(graph, {"x": x}, 3)


def test_what_really_is_a_circle_is_told_as_one() -> None:
    made = helper.make_node("If", ["c"], ["a"], then_branch=branch(helper.make_node("Neg", ["b"], ["z"])),
                            else_branch=branch(helper.make_node("Neg", ["x"], ["z"])))  # fmt: skip
    nodes = [made, helper.make_node("Tanh", ["a"], ["b"])]
    with pytest.raises(ModelError, match="in a circle"):
        from_proto(make_model(nodes, {"x": ("N", 2)}, ["b"], {"c": np.array(True)}))


@pytest.mark.parametrize("opset", range(1, 7))
def test_the_reference_runs_opsets_that_we_do_not(opset: int) -> None:
    proto = make_model([helper.make_node("Softmax", ["x"], ["y"])], {"x": ("N", 3)}, ["y"], opset=opset)
    proto.ir_version = 3
    graph = from_proto(proto)
    x = random((2, 3))
    expected = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    np.testing.assert_allclose(ort(graph, x)["y"], expected, rtol=1e-5)
    with pytest.raises(
        UnsupportedError, match=rf"opset {opset}, and opsets 7 to 28 are supported by the engine"
    ):
        bare(graph, 2)


@pytest.mark.parametrize(
    ("op_type", "domain", "attributes", "inputs"),
    [
        ("LayerNormalization", "", {"axis": -1}, ["x", "ones", "ones"]),
        ("ImageScaler", "", {"scale": 2.0, "bias": [1.0, 2.0, 3.0]}, ["x"]),
        ("Inverse", "com.microsoft", {}, ["x"]),
    ],
)
def test_operators_of_onnx_runtime_alone(
    op_type: str, domain: str, attributes: dict[str, object], inputs: list[str]
) -> None:
    node = helper.make_node(op_type, inputs, ["y"], "it", domain=domain, **attributes)
    shape = ("N", 3, 4, 4)
    graph = from_proto(make_model([node], {"x": shape}, ["y"], {"ones": np.ones(4, np.float32)}, 9, {"y": 4}))
    assert ort(graph, random((2, 3, 4, 4)))["y"].shape == (2, 3, 4, 4)
    with pytest.raises(
        UnsupportedError, match=rf"no operator '{op_type}'|does not support {domain}.{op_type}"
    ):
        bare(graph, 2)


@few
@given(st.permutations(["sequence", "map", "text", "numbers"]), st.integers(1, 4))
def test_outputs_that_are_no_numbers_are_left_out_with_a_word(order: list[str], count: int) -> None:
    made = {
        "numbers": (
            helper.make_node("Relu", ["x"], ["numbers"]),
            helper.make_tensor_value_info("numbers", TensorProto.FLOAT, ["N", 3]),
        ),
        "sequence": (
            helper.make_node("SequenceConstruct", ["x", "x"], ["sequence"]),
            helper.make_tensor_sequence_value_info("sequence", TensorProto.FLOAT, None),
        ),
        "text": (
            helper.make_node("Cast", ["x"], ["text"], to=TensorProto.STRING),
            helper.make_tensor_value_info("text", TensorProto.STRING, ["N", 3]),
        ),
        "map": (
            helper.make_node("ZipMap", ["x"], ["map"], domain="ai.onnx.ml", classlabels_int64s=[1, 2, 3]),
            helper.make_value_info("map", helper.make_sequence_type_proto(
                helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(1, [])))),
        ),
    }  # fmt: skip
    kinds = [kind for kind in order if kind == "numbers" or kind in order[:count]]
    proto = make_model([made[kind][0] for kind in kinds], {"x": ("N", 3)}, [])
    proto.graph.output.extend(made[kind][1] for kind in kinds)
    graph = from_proto(proto)
    assert [info.name for info in graph.outputs] == ["numbers"]
    words = {"sequence": "a sequence", "map": "a sequence", "text": "a tensor of texts"}
    assert list(graph.left_out) == [f"{kind}, {words[kind]}" for kind in kinds if kind != "numbers"]
    assert set(ort(graph, random((2, 3)))) == {"numbers"}


def test_texts_are_told_as_what_they_are() -> None:
    node = helper.make_node("Identity", ["x"], ["y"])
    types = {"x": TensorProto.STRING, "y": TensorProto.STRING}
    with pytest.raises(UnsupportedError, match=r"an input 'x' of texts \(strings\)"):
        from_proto(make_model([node], {"x": ("N", 2)}, ["y"], types=types))
    cast = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.STRING)
    with pytest.raises(UnsupportedError, match="gives out nothing but y, a tensor of texts"):
        from_proto(make_model([cast], {"x": ("N", 2)}, ["y"], types={"y": TensorProto.STRING}))


@pytest.mark.parametrize(
    ("node", "constant", "what"),
    [
        (helper.make_node("Add", ["x", "k"], ["y"], "it"), np.array([1, 2, 3]), "types"),
        (helper.make_node("MatMul", ["x", "k"], ["y"], "it"), np.ones((3, 2)), "types"),
        (helper.make_node("Sqrt", ["k"], ["y"], "it"), np.array([[1, 2, 3]]), "types"),
        (helper.make_node("Add", ["x", "k"], ["y"], "it"), np.ones(4, np.float32), "shapes"),
        (helper.make_node("MatMul", ["x", "k"], ["y"], "it"), np.ones((4, 2), np.float32), "shapes"),
    ],
)
def test_types_are_told_as_types(node: onnx.NodeProto, constant: np.ndarray, what: str) -> None:
    graph = from_proto(make_model([node], {"x": ("N", 3)}, ["y"], {"k": constant}))
    with pytest.raises(UnsupportedError, match=f"has {what} that do not fit together"):
        bare(graph, 1)


def test_a_pointer_of_git_lfs_is_told_as_one(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n")
    with pytest.raises(ModelError, match=r"is a Git LFS pointer, .*git lfs pull"):
        load(path)
