"""Which axis is the batch, and what the others may be given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from engine import backends
from engine.graph.graph import Graph, Shape, TensorInfo, batch_axes
from engine.graph.importer import from_proto
from engine.graph.sizes import names, sized
from kernels.errors import InputError
from tests.engine.harness import bare, make_model, random


def of(*shapes: Shape) -> dict[str, int]:
    return batch_axes([TensorInfo(f"x{i}", "float32", shape) for i, shape in enumerate(shapes)])


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([("N", 3, 224, 224)], {"x0": 0}),
        ([(None, 3)], {"x0": 0}),
        ([(4, 3)], {}),
        ([("batch", "sequence"), ("batch", "sequence")], {"x0": 0, "x1": 0}),
        ([("sequence", "batch", 8)], {"x0": 1}),
        ([("sequence", "batch", 8), (1, "batch", 16)], {"x0": 1, "x1": 1}),
        ([(35, "b", 8)], {"x0": 1}),
        ([("sequence", 8)], {"x0": 0}),
        ([("N", 8), ()], {"x0": 0}),
        ([(), ("N", 8)], {"x1": 0}),
        ([("N", 8), (8, 8)], {"x0": 0}),
        ([(3, "height", "width")], {}),
        ([("one", 3), ("other", 3)], {"x0": 0, "x1": 0}),
        ([("batch", 3), ("other", 3)], {"x0": 0}),
    ],
)
def test_the_batch_is_found(shapes: list[Shape], expected: dict[str, int]) -> None:
    assert of(*shapes) == expected


def net(*shape: int | str) -> Graph:
    node = helper.make_node("Relu", ["x"], ["y"], "r")
    return from_proto(make_model([node], {"x": shape}, ["y"], ranks={"y": len(shape)}))


@given(st.lists(st.sampled_from(["height", "width", "depth", 3]), min_size=1, max_size=4), st.data())
def test_an_open_axis_gets_its_size_wherever_it_is_named(axes: list[int | str], data: st.DataObject) -> None:
    graph = net("N", *axes)
    symbols = {axis for axis in axes if isinstance(axis, str)}
    wanted = {symbol: data.draw(st.integers(1, 9)) for symbol in sorted(symbols)}
    made = sized(graph, wanted)
    assert made.inputs[0].shape == ("N", *(wanted.get(axis, axis) for axis in axes))
    assert not made.open_axes
    assert (made.sha256 == graph.sha256) == (not wanted)


def test_an_axis_without_a_name_is_called_by_its_place() -> None:
    graph = net("N", "height", "width")
    graph.proto.graph.input[0].type.tensor_type.shape.dim[1].ClearField("dim_param")
    graph = from_proto(graph.proto, "net", sha256="one")
    assert [*names(graph)] == ["N", "x.0", "x.1", "width", "x.2"]
    assert sized(graph, {"x.1": 5, "width": 6}).inputs[0].shape == ("N", 5, 6)
    assert sized(graph, {"x.0": 2, "x.1": 5, "x.2": 6}).fixed_batch == 2


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"hight": 5}, r"no open axis 'hight' \(did you mean 'height'\?\); open are N, x\.0, height"),
        ({"height": 0}, "size 0; 1 or more works"),
        ({"height": 2, "x.1": 3}, "given two sizes, 2 and 3"),
    ],
)
def test_what_no_axis_takes_is_told(wanted: dict[str, int], words: str) -> None:
    with pytest.raises(InputError, match=words):
        sized(net("N", "height", "width"), wanted)


@pytest.mark.parametrize("name", ["engine-cpu", "ort-cpu"])
def test_a_batch_that_is_not_first_is_run(name: str) -> None:
    graph = net(5, "batch", 3)
    assert graph.fixed_batch is None
    session = backends.get(name).prepare(graph, 2)
    try:
        x = random((5, 2, 3))
        session.bind({"x": x})
        session.run()
        assert session.fetch()["y"].shape == x.shape
    finally:
        session.close()
    assert bare(graph, 2).tensors["y"].shape == (5, 2, 3)
