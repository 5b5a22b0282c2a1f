"""Operators that pick, put, sort and sum along axes, over drawn shapes, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from kernels.errors import UnsupportedError
from tests.engine.harness import agree, bare, make_model, one_node, random

few = settings(max_examples=8, deadline=None)
small = st.integers(1, 5)
INT64 = TensorProto.INT64


def fed(op_type: str, feeds: dict[str, np.ndarray], rank: int, opset: int = 18, **attributes: Any) -> Graph:
    """One node whose inputs are all computed elsewhere: nothing of it is known beforehand."""
    made = helper.make_node(op_type, list(feeds), ["y"], "it", **attributes)
    types = {name: int(helper.np_dtype_to_tensor_dtype(array.dtype)) for name, array in feeds.items()}
    shapes = {name: array.shape for name, array in feeds.items()}
    types["y"] = types[next(iter(feeds))]
    return from_proto(make_model([made], shapes, ["y"], None, opset, {"y": rank}, types), "fed")


def both(op_type: str, feeds: dict[str, np.ndarray], rank: int, **attributes: Any) -> None:
    """Places that are constant, and places that are computed."""
    x, *others = feeds.values()
    batch = x.shape[0] if x.shape else 1
    agree(one_node(op_type, x.shape, others, 18, rank=rank, **attributes), {"x": x}, batch)
    agree(fed(op_type, feeds, rank, **attributes), feeds, batch)


@few
@given(st.lists(small, min_size=1, max_size=3), st.data())
def test_elements_by_places(sizes: list[int], data: Any) -> None:
    axis = data.draw(st.integers(-len(sizes), len(sizes) - 1))
    rng = np.random.default_rng(sum(sizes))
    of = tuple(data.draw(small) if a == axis % len(sizes) else d for a, d in enumerate(sizes))
    places = rng.integers(-sizes[axis], sizes[axis], of)
    both("GatherElements", {"x": random(tuple(sizes)), "p": places}, len(sizes), axis=axis)


@pytest.mark.parametrize("batch", [0, 1])
def test_rows_by_places_on_several_axes(batch: int) -> None:
    places = np.random.default_rng(1).integers(-2, 2, (3, 5, 2))
    feeds = {"x": random((3, 4, 2, 6)), "p": places}
    both("GatherND", feeds, 3 + (batch == 0), batch_dims=batch)


@few
@given(
    st.sampled_from(["none", "add", "mul", "max", "min"]), st.lists(small, min_size=1, max_size=3), st.data()
)
def test_scattered_elements(reduction: str, sizes: list[int], data: Any) -> None:
    axis = data.draw(st.integers(-len(sizes), len(sizes) - 1))
    rng = np.random.default_rng(sum(sizes))
    # Of several that replace one element ONNX leaves it open which stays.
    count = data.draw(st.integers(1, sizes[axis]))
    of = [count if a == axis % len(sizes) else d for a, d in enumerate(sizes)]
    order = rng.permuted(np.broadcast_to(np.arange(sizes[axis]), (*of[:-1], sizes[axis])), axis=-1)
    if axis % len(sizes) != len(sizes) - 1:
        order = np.argsort(rng.random(sizes), axis=axis)
    places = np.take(order, np.arange(count), axis=axis % len(sizes))
    feeds = {"x": random(tuple(sizes)), "p": places - sizes[axis], "u": random(places.shape, 2)}
    both("ScatterElements", feeds, len(sizes), axis=axis, reduction=reduction)


@pytest.mark.parametrize("reduction", ["none", "add", "max"])
def test_scattered_rows(reduction: str) -> None:
    places = np.array([[[2], [0]], [[3], [-4 + 1]]])  # of 4 rows, one counted from the end
    feeds = {"x": random((4, 3, 2)), "p": places, "u": random((2, 2, 3, 2), 1)}
    both("ScatterND", feeds, 3, reduction=reduction)


@few
@given(st.lists(small, min_size=1, max_size=3), st.data())
def test_the_largest_and_smallest(sizes: list[int], data: Any) -> None:
    axis = data.draw(st.integers(-len(sizes), len(sizes) - 1))
    k, largest = data.draw(st.integers(1, sizes[axis])), data.draw(st.integers(0, 1))
    x = np.rint(2 * random(tuple(sizes)))  # with equal ones, of which the first comes first
    made = helper.make_node("TopK", ["x", "k"], ["y", "places"], "it", axis=axis, largest=largest)
    ranks = dict.fromkeys(("y", "places"), len(sizes))
    shape = ("N", *sizes[1:])
    model = make_model(
        [made], {"x": shape}, ["y", "places"], {"k": np.array([k])}, 18, ranks, {"places": INT64}
    )
    agree(from_proto(model, "top"), {"x": x}, sizes[0])


@few
@given(st.lists(small, min_size=1, max_size=3), st.integers(0, 1), st.integers(0, 1), st.data())
def test_running_sums(sizes: list[int], exclusive: int, reverse: int, data: Any) -> None:
    axis = data.draw(st.integers(-len(sizes), len(sizes) - 1))
    graph = one_node("CumSum", tuple(sizes), [np.array(axis)], exclusive=exclusive, reverse=reverse)
    agree(graph, {"x": random(tuple(sizes))}, sizes[0])


@few
@given(st.integers(1, 6), st.integers(-3, 2))
def test_one_hot(depth: int, axis: int) -> None:
    places = np.random.default_rng(depth).integers(-depth - 1, depth + 1, (3, 4))  # some beyond
    made = helper.make_node("OneHot", ["x", "depth", "values"], ["y"], "it", axis=axis)
    constants = {"depth": np.array([depth]), "values": np.array([0.5, 2.0], np.float32)}
    model = make_model([made], {"x": ("N", 4)}, ["y"], constants, ranks={"y": 3}, types={"x": INT64})
    agree(from_proto(model, "hot"), {"x": places}, 3)


@pytest.mark.parametrize("opset", [12, 13])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_hardmax(opset: int, axis: int) -> None:
    x = np.rint(random((2, 3, 4)))
    agree(one_node("Hardmax", x.shape, opset=opset, axis=axis), {"x": x}, 2)


@few
@given(st.integers(-4, 4), st.integers(0, 1), st.booleans())
def test_triangles(k: int, upper: int, computed: bool) -> None:
    feeds = {"x": random((2, 3, 4)), "k": np.array(k)}
    if computed:
        agree(fed("Trilu", feeds, 3, upper=upper), feeds, 2)
    else:
        agree(one_node("Trilu", (2, 3, 4), [np.array(k)], upper=upper), {"x": feeds["x"]}, 2)


@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])
def test_sequences_are_turned_round_to_their_lengths(axes: tuple[int, int]) -> None:
    time, batch = axes
    feeds = {"x": random((3, 3, 2)), "lengths": np.array([3, 1, 2])}
    both("ReverseSequence", feeds, 3, time_axis=time, batch_axis=batch)


def test_what_a_condition_keeps() -> None:
    kept = np.array([True, False, True])
    agree(one_node("Compress", (3, 4), [kept], axis=0), {"x": random((3, 4))}, 3)
    agree(one_node("Compress", (3, 4), [np.tile(kept, 4)], rank=1), {"x": random((3, 4))}, 3)
    feeds = {"x": random((3, 4)), "kept": kept}
    with pytest.raises(UnsupportedError, match="its condition is computed, and how much it leaves"):
        bare(fed("Compress", feeds, 2, axis=0), 3)


def test_values_are_put_back_where_a_pool_found_them() -> None:
    nodes = [
        helper.make_node("MaxPool", ["x"], ["m", "places"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("MaxUnpool", ["m", "places"], ["y"], "back", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    graph = from_proto(make_model(nodes, {"x": ("N", 2, 4, 6)}, ["y"], ranks={"y": 4}), "back")
    agree(graph, {"x": random((2, 2, 4, 6))}, 2)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (
            one_node("ScatterND", (2, 3), [np.array([[5]]), random((1, 3))]),
            "reach from 5 to 5 on an axis of 2",
        ),
        (one_node("CumSum", (2, 3), [np.array(2)]), "axis 2 is outside a tensor of rank 2"),
    ],
)
def test_places_that_there_are_none_of(graph: Graph, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"^node 'it' .*{reason}"):
        bare(graph, 2)


@pytest.mark.parametrize("op_type", ["NonZero", "Unique"])
def test_shapes_that_depend_on_values_are_the_references_alone(op_type: str) -> None:
    made = helper.make_node(op_type, ["x"], ["y"], "it")
    types = {"y": INT64} if op_type == "NonZero" else {}
    rank = 2 if op_type == "NonZero" else 1
    graph = from_proto(make_model([made], {"x": (2, 3)}, ["y"], ranks={"y": rank}, types=types), "found")
    with pytest.raises(
        UnsupportedError, match=rf"does not support {op_type} .*; how much it finds depends on values"
    ):
        bare(graph, 2)
