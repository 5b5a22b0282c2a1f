"""Reading model files: what is accepted, and the one sentence for what is not."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from engine import backends
from engine.graph.importer import OPSETS, from_proto, load
from engine.ort.sessions import declared_earlier
from kernels.errors import InputError, ModelError, UnsupportedError
from tests.engine.harness import agree, bare, make_model, random, run_plan


def convolution(opset: int = 17, **names: str) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], names.get("first", ""), pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], names.get("second", "")),
        helper.make_node("Tanh", ["b"], ["y"], names.get("third", "")),
    ]
    weights = {"w": random((64, 3, 3, 3))}
    return make_model(nodes, {"x": ("N", 3, 8, 8)}, ["y"], weights, opset, {"y": 4})


def written(folder: Path, model: onnx.ModelProto, **options: Any) -> Path:
    path = folder / "model.onnx"
    onnx.save(model, path, **options)
    return path


def test_a_file_becomes_a_graph(tmp_path: Path) -> None:
    path = written(tmp_path, convolution(first="conv"))
    graph = load(path)
    assert (graph.name, graph.opset, graph.fixed_batch) == ("model", 17, None)
    assert graph.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert [(i.name, i.dtype, i.shape) for i in graph.inputs] == [("x", "float32", ("N", 3, 8, 8))]
    assert graph.initializers["w"].shape == (64, 3, 3, 3)
    assert not graph.initializers["w"].flags.writeable
    assert graph.nodes[0].attributes == {"pads": (1, 1, 1, 1)}


def test_every_node_has_a_name_of_its_own_in_graph_and_proto() -> None:
    graph = from_proto(convolution(first="Tanh_2", second="Tanh_2"))
    assert [node.name for node in graph.nodes] == ["Tanh_2", "Tanh_2_1", "Tanh_2_"]
    assert [node.name for node in graph.proto.graph.node] == [node.name for node in graph.nodes]


def test_constant_nodes_are_initializers() -> None:
    nodes = [
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array([2.0], np.float32))),
        helper.make_node("Constant", [], ["d"], value_floats=[1.0, 3.0]),
        helper.make_node("Add", ["c", "d"], ["e"]),
        helper.make_node("Mul", ["x", "e"], ["y"]),
    ]
    graph = from_proto(make_model(nodes, {"x": ("N", 2)}, ["y"]))
    assert [node.op_type for node in graph.nodes] == ["Add", "Mul"]
    x = random((3, 2))
    np.testing.assert_allclose(run_plan(graph, 3, {"x": x})["y"], x * [3, 5], rtol=1e-6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("opset", OPSETS)
def test_opsets(opset: int) -> None:
    model = convolution(opset)
    assert from_proto(model).opset == opset
    answers = {}
    for name in ("engine-cpu", "ort-cpu"):  # which knows some opsets fewer than ONNX does
        session = backends.get(name).prepare(from_proto(model), 2)
        session.bind({"x": random((2, 3, 8, 8))})
        session.run()
        answers[name] = session.fetch()["y"]
        session.close()
    np.testing.assert_allclose(answers["engine-cpu"], answers["ort-cpu"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", [6, 29])
def test_other_opsets_are_refused(opset: int) -> None:
    graph = from_proto(convolution(opset))
    with pytest.raises(UnsupportedError, match=rf"of opset {opset}, and opsets 7 to 28 are supported"):
        bare(graph, 2)


def test_an_opset_is_told_of_earlier_only_where_it_means_the_same() -> None:
    model = convolution(28)
    model.ir_version = 14
    earlier = declared_earlier(model)
    assert earlier is not None
    told = (earlier.opset_import[0].version, earlier.ir_version, earlier.graph.node)
    assert told == (22, 10, model.graph.node), "Conv is of version 22, Relu of 14, Tanh of 13"
    softmax = make_model([helper.make_node("Softmax", ["x"], ["y"])], {"x": ("N", 3)}, ["y"], opset=13)
    same = declared_earlier(softmax)
    assert same is None or same.opset_import[0].version == 13, "before 13 it was another"
    model.graph.node.append(helper.make_node("New", ["y"], ["z"]))
    assert declared_earlier(model) is None


def same_answer(model: onnx.ModelProto) -> None:
    """The model is the plain one, however it is written."""
    x = random((2, 3, 8, 8))
    np.testing.assert_array_equal(
        run_plan(from_proto(model), 2, {"x": x})["y"],
        run_plan(from_proto(convolution()), 2, {"x": x})["y"],
    )


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_nodes_in_any_order(order: tuple[int, ...]) -> None:
    model = convolution()
    nodes = [model.graph.node[index] for index in order]
    model.graph.ClearField("node")
    model.graph.node.extend(nodes)
    assert [node.op_type for node in from_proto(model).nodes] == ["Conv", "Relu", "Tanh"]
    same_answer(model)


def test_a_node_comes_behind_what_its_graphs_read() -> None:
    inner = helper.make_graph(
        [helper.make_node("Relu", ["late"], ["z"])],
        "inner",
        [],
        [helper.make_tensor_value_info("z", 1, None)],
    )
    nodes = [
        helper.make_node("If", ["c"], ["y"], "if", then_branch=inner, else_branch=inner),
        helper.make_node("Tanh", ["x"], ["late"], "tanh"),
    ]
    graph = from_proto(make_model(nodes, {"x": ("N", 2)}, ["y"], {"c": np.array(True)}))
    assert [node.name for node in graph.nodes] == ["tanh", "if"]


def test_nodes_in_a_circle_are_refused() -> None:
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["b"], "second"),
        helper.make_node("Tanh", ["b"], ["y"], "third"),
    ]
    with pytest.raises(ModelError, match="node 'first': it reads what is made from its own output"):
        from_proto(make_model(nodes, {"x": ("N", 2)}, ["y"]))
    with pytest.raises(ModelError, match="in a circle"):
        from_proto(make_model([helper.make_node("Add", ["x", "y"], ["y"])], {"x": ("N", 2)}, ["y"]))


def test_thousands_of_nodes_in_the_worst_order_are_sorted_at_once() -> None:
    names = ["x", *(f"t{i}" for i in range(5000)), "y"]
    nodes = [helper.make_node("Relu", [a], [b]) for a, b in itertools.pairwise(names)]
    graph = from_proto(make_model(nodes[::-1], {"x": ("N", 2)}, ["y"]))
    assert graph.nodes[0].inputs == ("x",)


@pytest.mark.parametrize("both", [False, True])
def test_the_standard_domain_by_its_long_name(both: bool) -> None:
    model = convolution()
    for node in model.graph.node[: 2 if both else 3]:
        node.domain = "ai.onnx"
    if both:
        model.opset_import.append(helper.make_opsetid("ai.onnx", 17))
    else:
        model.opset_import[0].domain = "ai.onnx"
    graph = from_proto(model)
    assert {node.domain for node in graph.nodes} == {""}
    assert [(entry.domain, entry.version) for entry in graph.proto.opset_import] == [("", 17)]
    same_answer(model)


@pytest.mark.parametrize("field", ["shape", "type"])
def test_an_output_without_a_shape(field: str) -> None:
    model = convolution()
    if field == "shape":
        model.graph.output[0].type.tensor_type.ClearField("shape")
    else:
        model.graph.output[0].ClearField("type")
    assert len(from_proto(model).outputs[0].shape) == 4
    same_answer(model)
    backends.get("ort-cpu").prepare(from_proto(model), 2).close()


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN])
def test_weights_of_fewer_bits_are_widened_before_a_run(kind: int) -> None:
    weight = helper.make_tensor("w", kind, [2, 3], [1.0, 2.0, -0.5, 0.25, 4.0, 8.0])
    nodes = [
        helper.make_node("Cast", ["w"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["x", "wide"], ["y"]),
    ]
    model = make_model(nodes, {"x": ("N", 2)}, ["y"], opset=19)
    model.ir_version = 9
    model.graph.initializer.append(weight)
    x = random((4, 2))
    graph = from_proto(model)
    expected = x @ np.array([[1.0, 2.0, -0.5], [0.25, 4.0, 8.0]], np.float32)
    np.testing.assert_allclose(run_plan(graph, 4, {"x": x})["y"], expected, rtol=1e-6)


def test_elements_that_no_kernel_knows_are_refused_by_the_node() -> None:
    kind = TensorProto.UINT64
    node = helper.make_node("Identity", ["x"], ["m"], "same")
    add = helper.make_node("Add", ["m", "m"], ["y"], "add")
    types = {"x": kind, "y": kind}
    graph = from_proto(make_model([node, add], {"x": ("N", 2)}, ["y"], opset=17, types=types))
    with pytest.raises(UnsupportedError, match=r"node 'add' \(Add\): it computes in uint64"):
        bare(graph, 2)


@pytest.mark.parametrize(
    ("name", "content"), [("m.ort", b"\x10\0\0\0ORTM"), ("m.onnx", b"\x10\0\0\0ORTM" * 9), ("m.ort", b"x")]
)
def test_onnx_runtimes_own_format_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"in ONNX Runtime's own format \(\.ort\); name the \.onnx file"):
        load(path)


@pytest.mark.parametrize("ir_version", [3, 4, 7, 10])
def test_ir_versions(ir_version: int) -> None:
    model = convolution(9)
    model.ir_version = ir_version
    if ir_version < 4:  # initializers are inputs too
        model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, (64, 3, 3, 3)))
    assert [info.name for info in from_proto(model).inputs] == ["x"]


def test_initializers_that_ir_3_wants_among_the_inputs_need_not_be() -> None:
    model = convolution(9)
    model.ir_version = 3
    graph = from_proto(model)
    assert ([info.name for info in graph.inputs], graph.proto.ir_version) == (["x"], 4)


def test_a_missing_file() -> None:
    with pytest.raises(ModelError, match=r"model file '.*no\.onnx' does not exist"):
        load("no.onnx")


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is a folder"):
        load(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"\x00", b"not a model at all", b"\x89PNG\r\n\x1a\n", b"{}", b"\n\n\n"]
)
def test_not_onnx(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"is empty|is not an ONNX model"):
        load(path)


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    whole = convolution().SerializeToString()
    path = tmp_path / "cut.onnx"
    for length in {*range(1, 60), *range(60, len(whole), 97), len(whole) - 1}:
        path.write_bytes(whole[:length])
        with pytest.raises(InputError) as caught:
            load(path)
        assert "\n" not in str(caught.value)


def test_external_data(tmp_path: Path) -> None:
    options = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 0}
    path = written(tmp_path, convolution(), **options)
    graph = load(path)
    np.testing.assert_array_equal(graph.initializers["w"], random((64, 3, 3, 3)))
    weights = bytearray((tmp_path / "weights.bin").read_bytes())
    weights[0] ^= 1
    (tmp_path / "weights.bin").write_bytes(weights)
    assert load(path).sha256 != graph.sha256
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(
        ModelError, match="keeps weights in files beside it, and they cannot be read"
    ) as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_an_initializer_that_is_too_short() -> None:
    model = convolution()
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-4]
    with pytest.raises(ModelError, match="broken initializer 'w'"):
        from_proto(model)


def test_an_operator_that_onnx_does_not_know() -> None:
    model = make_model([helper.make_node("Florp", ["x"], ["y"], "f")], {"x": ("N", 2)}, ["y"])
    with pytest.raises(UnsupportedError, match="node 'f': opset 17 of ONNX has no operator 'Florp'"):
        bare(from_proto(model), 1)


def test_shapes_that_contradict_each_other() -> None:
    node = helper.make_node("Gemm", ["x", "w"], ["y"], "fc")
    model = make_model([node], {"x": ("N", 4)}, ["y"], {"w": random((50, 50))})
    with pytest.raises(UnsupportedError, match="shapes that do not fit together") as caught:
        bare(from_proto(model), 1)
    assert "\n" not in str(caught.value)


def test_a_graph_that_uses_what_nothing_makes() -> None:
    model = make_model([helper.make_node("Relu", ["nowhere"], ["y"])], {"x": ("N", 4)}, ["y"])
    with pytest.raises(ModelError, match=r"not a valid ONNX model: .*nowhere"):
        from_proto(model)


def test_custom_operators_load_and_are_refused_by_the_engine_alone() -> None:
    node = helper.make_node("Florp", ["x"], ["y"], "f", domain="org.example")
    model = make_model([node], {"x": ("N", 2)}, ["y"])
    model.opset_import.append(helper.make_opsetid("org.example", 1))
    graph = from_proto(model)
    with pytest.raises(UnsupportedError, match=r"node 'f' \(Florp\): .* does not support org.example.Florp"):
        bare(graph, 1)


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("constant", [True, False])
def test_sparse_weights_are_made_dense(linear: bool, constant: bool) -> None:
    values = helper.make_tensor("s", TensorProto.FLOAT, [2], [1.5, -2.0])
    places = [1, 5] if linear else [0, 1, 1, 2]
    indices = helper.make_tensor("i", TensorProto.INT64, [2] if linear else [2, 2], places)
    sparse = helper.make_sparse_tensor(values, indices, [2, 3])
    nodes = [helper.make_node("MatMul", ["x", "s"], ["y"])]
    if constant:
        nodes.insert(0, helper.make_node("Constant", [], ["s"], sparse_value=sparse))
    model = make_model(nodes, {"x": ("N", 2)}, ["y"])
    if not constant:
        model.graph.sparse_initializer.append(sparse)
    graph = from_proto(model)
    np.testing.assert_array_equal(graph.initializers["s"], [[0, 1.5, 0], [0, 0, -2]])
    agree(graph, {"x": random((3, 2))}, 3)


def test_broken_sparse_weights_and_sequences_are_refused() -> None:
    for place, shape, words in ((4, [4], "broken sparse"), (-1, [4], "broken sparse"), (0, [2**40], "dense")):
        model = convolution()
        values = helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0])
        indices = helper.make_tensor("i", TensorProto.INT64, [1], [place])
        model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, shape))
        with pytest.raises((ModelError, UnsupportedError), match=words):
            from_proto(model)
    node = helper.make_node("SequenceAt", ["x", "i"], ["y"])
    model = make_model([node], {}, ["y"], {"i": np.array(0)})
    model.graph.input.append(helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, [2, 2]))
    with pytest.raises(UnsupportedError, match="an input 'x' of type sequence; only tensors"):
        from_proto(model)


def test_the_course_net(data_dir: Path) -> None:
    graph = load(data_dir / "onnx" / "mnist-8.onnx")
    assert [info.name for info in graph.inputs] == ["Input3"]
    assert (graph.opset, graph.fixed_batch) == (8, 1)
