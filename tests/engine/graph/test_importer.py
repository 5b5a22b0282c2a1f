"""Reading model files: what is accepted, and the one sentence for what is not."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from engine.graph.importer import from_proto, load
from kernels.errors import InputError, ModelError, UnsupportedError
from tests.engine.harness import bare, make_model, random, run_plan


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


@pytest.mark.parametrize("opset", [7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23])
def test_opsets(opset: int) -> None:
    assert from_proto(convolution(opset)).opset == opset


@pytest.mark.parametrize("opset", [6, 24])
def test_other_opsets_are_refused(opset: int) -> None:
    with pytest.raises(ModelError, match=rf"of opset {opset}, and opsets 7 to 23 are supported"):
        from_proto(convolution(opset))


@pytest.mark.parametrize("ir_version", [3, 4, 7, 10])
def test_ir_versions(ir_version: int) -> None:
    model = convolution(9)
    model.ir_version = ir_version
    if ir_version < 4:  # initializers are inputs too
        model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, (64, 3, 3, 3)))
    assert [info.name for info in from_proto(model).inputs] == ["x"]


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
    with pytest.raises(ModelError, match="node 'f': opset 17 of ONNX has no operator 'Florp'"):
        from_proto(model)


def test_shapes_that_contradict_each_other() -> None:
    node = helper.make_node("Gemm", ["x", "w"], ["y"], "fc")
    model = make_model([node], {"x": ("N", 4)}, ["y"], {"w": random((50, 50))})
    with pytest.raises(ModelError, match="shapes that do not fit together") as caught:
        from_proto(model)
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


def test_sparse_weights_and_sequences_are_refused() -> None:
    model = convolution()
    values = helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [0])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))
    with pytest.raises(UnsupportedError, match="sparse initializers; only dense"):
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
