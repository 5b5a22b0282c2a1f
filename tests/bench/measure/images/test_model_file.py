"""Files whose inputs no data set feeds as they are: open axes, scalars, tables, time in front."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from bench.measure.images import model_file
from bench.measure.loaded_model import LoadedModel
from bench.measure.profile.session import batch_inputs
from bench.results.records import Job
from kernels.errors import InputError
from tests.engine.harness import make_model, run_plan

pytestmark = pytest.mark.usefixtures("own_cache")

few = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def saved(
    folder: Path, nodes: list[onnx.NodeProto], inputs: dict[str, tuple[int | str, ...]], rank: int
) -> Path:
    path = folder / "net.onnx"
    onnx.save(make_model(nodes, inputs, ["y"], ranks={"y": rank}), path)
    return path


SIZES = st.lists(st.sampled_from([1, 2, 3, 5]), min_size=0, max_size=3)


@few
@given(sizes=SIZES, data=st.data())
def test_inputs_without_a_batch_become_constants_and_are_told(
    sizes: list[int], data: st.DataObject, tmp_path: Path
) -> None:
    """y = x · t for every t that broadcasts: a scalar, a vector, a table; first or second of the inputs."""
    shape = tuple(sizes[data.draw(st.integers(0, len(sizes))) :])
    inputs = {"x": ("N", *sizes), "t": shape}
    if data.draw(st.booleans()):
        inputs = dict(reversed(inputs.items()))
    path = saved(tmp_path, [helper.make_node("Mul", ["x", "t"], ["y"])], inputs, 1 + len(sizes))
    found = model_file.read(path)
    assert [info.name for info in found.graph.inputs] == ["x"]
    assert found.graph.initializers["t"].shape == shape
    assert [note.startswith("input t has no batch") for note in found.notes] == [True]
    given_ = model_file.read(path, {}, {"t": "2.5"})
    assert (given_.graph.initializers["t"] == 2.5).all()
    assert given_.notes == ()
    loaded = LoadedModel(
        str(path), Job(models=(str(path),), backends=("engine-cpu", "ort-cpu")), (3,), lambda *_: None
    )
    golden = loaded.golden()
    right = golden.tensors["x"] * loaded.graph.initializers["t"].astype(np.float64)
    np.testing.assert_allclose(golden.tensors["y"], right)


def test_a_profiles_batch_lies_where_the_model_has_it(tmp_path: Path) -> None:
    path = saved(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], {"x": ("time", "batch", 4)}, 3)
    job = Job(models=(str(path),), backends=("ort-cpu",), dims={"time": 5})
    loaded = LoadedModel(str(path), job, (3,), lambda *_: None)
    for batch in (1, 7):
        assert batch_inputs(loaded, batch)["x"].shape == (5, batch, 4)


def test_weights_that_are_inputs_are_fed_in_their_own_shape(tmp_path: Path) -> None:
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["y"], "conv")]
    path = saved(tmp_path, nodes, {"x": ("N", 3, 8, 8), "w": (4, 3, 3, 3), "b": (4,)}, 4)
    graph = model_file.read(path).graph
    shapes = {name: array.shape for name, array in graph.initializers.items()}
    assert shapes == {"w": (4, 3, 3, 3), "b": (4,)}
    assert not np.array_equal(graph.initializers["w"][0], graph.initializers["w"][1])


@pytest.mark.parametrize(
    ("shape", "dims", "expected"),
    [
        (("N", 3, "height", "width"), {}, ("N", 3, 224, 224)),
        (("N", 3, "height", "width"), {"height": 64}, ("N", 3, 64, 224)),
        (("N", "height", "width", 3), {}, ("N", 224, 224, 3)),
        (("N", 12, "length"), {}, ("N", 12, 128)),
        (("sequence", "batch", 4), {"sequence": 7}, (7, "batch", 4)),
        (("batch", "sequence", 4), {"batch": 2, "sequence": 7}, (2, 7, 4)),
    ],
)
def test_open_axes_get_what_is_said_else_a_guess_that_is_told(
    shape: tuple[int | str, ...], dims: dict[str, int], expected: tuple[int | str, ...], tmp_path: Path
) -> None:
    path = saved(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], {"x": shape}, len(shape))
    found = model_file.read(path, dims)
    assert found.graph.inputs[0].shape == expected
    guessed = [
        f"--dim {was}={size}"
        for was, size in zip(shape, expected, strict=True)
        if was != size and was not in dims
    ]
    assert bool(found.notes) == bool(guessed)
    assert all(words in found.notes[0] for words in guessed)


def test_a_data_set_tells_the_size_of_its_pictures(tmp_path: Path) -> None:
    path = saved(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], {"x": ("N", 1, "h", "w")}, 4)
    assert model_file.read(path, {}, dataset="digits").graph.inputs[0].shape == ("N", 1, 28, 28)


def test_the_models_file_may_say_its_sizes(tmp_path: Path) -> None:
    path = saved(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], {"x": ("N", "a", "b")}, 3)
    proto = onnx.load(path)
    proto.metadata_props.add(key="kernelscope.dim", value="a=4 b=6")
    onnx.save(proto, path)
    assert model_file.read(path).graph.inputs[0].shape == ("N", 4, 6)
    assert model_file.read(path, {"b": 9}).graph.inputs[0].shape == ("N", 4, 9)


def test_a_name_that_no_axis_has_is_told_of_one_model_and_passed_over_among_several(tmp_path: Path) -> None:
    path = saved(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], {"x": ("N", 4)}, 2)
    with pytest.raises(InputError, match="no open axis 'height'"):
        model_file.read(path, {"height": 4})
    assert model_file.read(path, {"height": 4}, alone=False).graph.inputs[0].shape == ("N", 4)


def test_masks_of_minus_infinity_are_no_fault(tmp_path: Path) -> None:
    mask = np.triu(np.full((6, 6), -np.inf, np.float32), 1)
    nodes = [helper.make_node("Add", ["x", "mask"], ["m"]), helper.make_node("Softmax", ["m"], ["y"])]
    path = tmp_path / "mask.onnx"
    onnx.save(make_model(nodes, {"x": ("N", 6, 6)}, ["y"], {"mask": mask}, ranks={"y": 3}), path)
    LoadedModel(str(path), Job(models=(str(path),), backends=("ort-cpu",)), (1,), lambda *_: None)


def test_sizes_hold_for_the_model_that_they_name() -> None:
    job = Job(
        models=("a/yolo.onnx", "b.onnx"), backends=(), dims={"height": 64, "yolo:height": 640, "b:width": 5}
    )
    assert job.dims_of("a/yolo.onnx") == {"height": 640}
    assert job.dims_of("b.onnx") == {"height": 64, "width": 5}


def test_the_type_of_an_input_is_kept(tmp_path: Path) -> None:
    nodes = [helper.make_node("Gather", ["x", "k"], ["y"], axis=1)]
    proto = make_model(nodes, {"x": ("N", 4), "k": ()}, ["y"], types={"k": TensorProto.INT64}, ranks={"y": 1})
    path = tmp_path / "net.onnx"
    onnx.save(proto, path)
    assert model_file.read(path).graph.initializers["k"] == np.array(1, np.int64)


def test_ends_in_types_that_numpy_has_not_are_converted_within(tmp_path: Path) -> None:
    """Names stay, for whoever feeds and fetches by them; a graph within a node reads the input, too."""
    half, wide = TensorProto.BFLOAT16, TensorProto.FLOAT
    out = helper.make_tensor_value_info("z", half, None)
    branches = [
        helper.make_graph([helper.make_node(op, ["x"], ["z"])], op, [], [out]) for op in ("Neg", "Abs")
    ]
    nodes = [
        helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", TensorProto.BOOL, [], [True])),
        helper.make_node("If", ["c"], ["z"], then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("Add", ["z", "x"], ["s"]),
        helper.make_node("Sub", ["s", "x"], ["y"]),
    ]
    types = {"x": half, "y": half}
    path = tmp_path / "net.onnx"
    onnx.save(make_model(nodes, {"x": ("N", 3)}, ["y"], opset=22, types=types), path)
    graph, notes = model_file.read(path)
    assert [(info.name, info.dtype) for info in (*graph.inputs, *graph.outputs)] == [
        ("x", "float32"),
        ("y", "float32"),
    ]
    assert [note.split(",")[0] for note in notes] == ["input x is bfloat16", "output y is bfloat16"]
    assert {value.type.tensor_type.elem_type for value in graph.proto.graph.input} == {wide}
    x = np.array([[1.001, -2.7, 3.14159]], np.float32)
    found = run_plan(graph, 1, {"x": x})["y"]
    assert (found == -x.astype("bfloat16").astype(np.float32)).all()
