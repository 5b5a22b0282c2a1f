"""Operators that walk rows, over drawn shapes and attributes, against ONNX Runtime or ONNX's evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx.reference import ReferenceEvaluator

from engine.graph.importer import from_proto
from kernels.errors import UnsupportedError
from tests.engine.harness import agree, bare, make_model, one_node, random, run_plan

few = settings(max_examples=12, deadline=None)
small = st.integers(1, 5)


def as_onnx(graph: Any, x: np.ndarray) -> None:
    """Our plan's answer is that of ONNX's evaluator, where ONNX Runtime has no such kernel."""
    (ours,) = run_plan(graph, x.shape[0], {"x": x}).values()
    (expected,) = ReferenceEvaluator(graph.whole_proto()).run(None, {"x": x})
    assert ours.shape == expected.shape
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=2e-5)


@few
@given(st.lists(small, min_size=2, max_size=4), st.data())
def test_layer_normalization(sizes: list[int], data: Any) -> None:
    axis = data.draw(st.integers(1 - len(sizes), len(sizes) - 1))
    normal = sizes[axis:]
    broadcast = data.draw(st.booleans())
    scale = [1 if broadcast and data.draw(st.booleans()) else size for size in normal]
    bias = random(tuple(normal), 2) if data.draw(st.booleans()) else None
    constants = [random(tuple(scale), 1), bias]
    graph = one_node("LayerNormalization", tuple(sizes), constants, axis=axis, epsilon=0.01)
    agree(graph, {"x": 2 + random(tuple(sizes))}, sizes[0])


@few
@given(st.integers(1, 300), st.floats(0, 5), st.integers(0, 99))
def test_a_large_mean_takes_no_digits_of_what_is_left(length: int, power: float, seed: int) -> None:
    """Values about ±10^power with a spread of 1, one of them far off: as right as float32 is about 0."""
    x = random((3, length), seed) + np.float32(10**power * (1 - 2 * (seed % 2)))
    x[2, seed % length] *= -3
    graph = one_node("LayerNormalization", (3, length), [np.ones(length, np.float32)], axis=1)
    (ours,) = run_plan(graph, 3, {"x": x}).values()
    wide = x.astype(np.float64)
    moved = wide - wide.mean(1, keepdims=True)
    expected = moved / np.sqrt(np.square(moved).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(ours, expected, rtol=2e-6, atol=3e-6)


def test_a_layers_mean_and_deviation_are_given() -> None:
    node = helper.make_node("LayerNormalization", ["x", "c0"], ["y", "mean", "factor"], "it", axis=1)
    outputs = ["y", "mean", "factor"]
    ranks = dict.fromkeys(outputs, 3)
    proto = make_model([node], {"x": ("N", 3, 4)}, outputs, {"c0": random((3, 4), 1)}, ranks=ranks)
    agree(from_proto(proto, "layer"), {"x": 2 + random((2, 3, 4))}, 2)


@few
@given(st.integers(1, 3), small, st.integers(1, 3), small)
def test_groups_and_instances(n: int, groups: int, each: int, pixels: int) -> None:
    shape, c = (n, groups * each, pixels, 2), groups * each
    x = 2 + random(shape)
    values = [random((c,), seed) for seed in (1, 2)]
    as_onnx(one_node("GroupNormalization", shape, values, opset=21, num_groups=groups), x)
    agree(one_node("InstanceNormalization", shape, values), {"x": x}, n)


@pytest.mark.parametrize("axis", [-1, 1])
def test_root_mean_square(axis: int) -> None:
    shape = (2, 3, 4)
    as_onnx(
        one_node("RMSNormalization", shape, [random(shape[axis:], 1)], opset=23, axis=axis), random(shape)
    )


@pytest.mark.parametrize("axes", [[0, 2, 3], [2, 3], [1], [-1, 0]])
def test_mean_and_variance_over_any_axes(axes: list[int]) -> None:
    shape = (2, 3, 4, 5)
    agree(one_node("MeanVarianceNormalization", shape, axes=axes), {"x": 2 + random(shape)}, 2)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_norms(p: int, axis: int) -> None:
    x = random((2, 3, 4))
    x[:, :, 1] = 0  # along axis 0 and 1 the norm is 0, and zeros stay zeros
    agree(one_node("LpNormalization", (2, 3, 4), p=p, axis=axis), {"x": x}, 2)


@few
@given(st.sampled_from(["ArgMax", "ArgMin"]), st.lists(small, min_size=1, max_size=4), st.data())
def test_places_of_extremes(op_type: str, sizes: list[int], data: Any) -> None:
    """Several hold the extreme value."""
    axis, keep = data.draw(st.integers(-len(sizes), len(sizes) - 1)), data.draw(st.integers(0, 1))
    last = data.draw(st.integers(0, 1))
    rank = len(sizes) if keep else len(sizes) - 1
    node = helper.make_node(op_type, ["x"], ["y"], "it", axis=axis, keepdims=keep, select_last_index=last)
    proto = make_model([node], {"x": ("N", *sizes[1:])}, ["y"], opset=13, ranks={"y": rank}, types={"y": 7})
    agree(from_proto(proto, "place"), {"x": np.rint(random(tuple(sizes)))}, sizes[0])


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (one_node("LpNormalization", (2, 3), p=3), "p is 3"),
        (one_node("GroupNormalization", (2, 3, 4), [random((3,))] * 2, 21, num_groups=2), "3 channels"),
        (one_node("LayerNormalization", (2, 3), [random((3,))], stash_type=10), "stash_type"),
    ],
)
def test_refusals(graph: Any, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"^node 'it' .*{reason}"):
        bare(graph, 2)


@few
@given(st.lists(small, min_size=1, max_size=3), st.lists(st.integers(1, 3), max_size=2), st.data())
def test_gather(sizes: list[int], of: list[int], data: Any) -> None:
    axis = data.draw(st.integers(-len(sizes), len(sizes) - 1))
    places = np.random.default_rng(len(of)).integers(-sizes[axis], sizes[axis], tuple(of))
    x, rank = random(tuple(sizes)), len(sizes) - 1 + len(of)
    agree(one_node("Gather", x.shape, [places], rank=rank, axis=axis), {"x": x}, sizes[0])
    node = helper.make_node("Gather", ["x", "places"], ["y"], "it", axis=axis)
    shapes = {"x": sizes, "places": of}
    proto = make_model([node], shapes, ["y"], ranks={"y": rank}, types={"places": 7})
    agree(from_proto(proto, "computed"), {"x": x, "places": places}, sizes[0])


def test_places_that_lie_together_are_cut_out() -> None:
    graph = one_node("Gather", (2, 6, 3), [np.array([2, 3, -2])], axis=1)
    assert [step.op for step in bare(graph, 2).steps] == ["pad"]


def test_a_computed_place_beyond_the_axis_reads_nothing_beyond_the_tensor() -> None:
    node = helper.make_node("Gather", ["x", "places"], ["y"], "it", axis=0)
    proto = make_model([node], {"x": (3, 2), "places": (4,)}, ["y"], types={"places": 7})
    x, places = random((3, 2)), np.array([2, 99, -99, -1])
    np.testing.assert_array_equal(
        run_plan(from_proto(proto, "beyond"), 3, {"x": x, "places": places})["y"], x[[2, 2, 0, 2]]
    )


@few
@given(st.lists(small, min_size=1, max_size=3), st.data())
def test_gather_by_element(sizes: list[int], data: Any) -> None:
    axis = data.draw(st.integers(-len(sizes), len(sizes) - 1))
    shape = [data.draw(st.integers(1, size)) for size in sizes]
    shape[axis] = data.draw(small)
    places = np.random.default_rng(shape[0]).integers(-sizes[axis], sizes[axis], shape)
    graph = one_node("GatherElements", tuple(sizes), [places], axis=axis)
    agree(graph, {"x": random(tuple(sizes))}, sizes[0])


@pytest.mark.parametrize(
    ("places", "batch", "rank"),
    [
        ([[0, 1], [-1, -2]], 0, 2),
        ([[1], [0], [-1]], 0, 3),
        ([[[0], [3]], [[2], [-4]]], 1, 3),
        ([[1], [2]], 1, 2),
    ],
)
def test_gather_of_several_axes(places: list[Any], batch: int, rank: int) -> None:
    graph = one_node("GatherND", (2, 4, 3), [np.array(places)], rank=rank, batch_dims=batch)
    agree(graph, {"x": random((2, 4, 3))}, 2)


@pytest.mark.parametrize("repeats", [[1, 1, 1], [2, 1, 3], [1, 4, 1], [3, 2, 2]])
def test_tile(repeats: list[int]) -> None:
    agree(one_node("Tile", (2, 4, 3), [np.array(repeats)]), {"x": random((2, 4, 3))}, 2)


@few
@given(st.lists(small, min_size=1, max_size=3), st.data())
def test_slices_in_steps(sizes: list[int], data: Any) -> None:
    axes = list(range(len(sizes)))
    steps = [data.draw(st.sampled_from([1, 2, 3, -1, -2, 2**31])) for _ in axes]
    starts = [data.draw(st.integers(-size, size - 1)) for size in sizes]
    ends = [np.iinfo(np.int64).max if step > 0 else np.iinfo(np.int64).min for step in steps]
    graph = one_node("Slice", tuple(sizes), [np.array(v) for v in (starts, ends, axes, steps)])
    agree(graph, {"x": random(tuple(sizes))}, sizes[0])


@few
@given(st.data(), small, small, small)
def test_products_of_any_ranks(data: Any, m: int, k: int, n: int) -> None:
    """Computed by computed and by a constant; leading axes that broadcast, operands with one axis."""
    whole = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    lead = [[1 if data.draw(st.booleans()) else size for size in whole] for _ in range(2)]
    lead = [sizes[data.draw(st.integers(0, len(sizes))) :] for sizes in lead]
    shape_a = (k,) if data.draw(st.integers(0, 5)) == 0 else (*lead[0], m, k)
    shape_b = (k,) if data.draw(st.integers(0, 5)) == 0 else (*lead[1], k, n)
    a, b = random(shape_a, 1), random(shape_b, 2)
    rank = (a @ b).ndim
    if data.draw(st.booleans()):
        agree(one_node("MatMul", shape_a, [b], rank=rank), {"x": a}, shape_a[0])
        return
    node = helper.make_node("MatMul", ["a", "b"], ["y"], "it")
    graph = from_proto(make_model([node], {"a": shape_a, "b": shape_b}, ["y"], ranks={"y": rank}), "two")
    agree(graph, {"a": a, "b": b}, graph.fixed_batch or 1)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (one_node("Gather", (2, 3), [np.array([0, 3])], axis=1), "index 3 is outside an axis of 3"),
        (one_node("GatherElements", (2, 3), [np.array([[0, 3]])], axis=1), "reach from 0 to 3"),
        (one_node("GatherND", (2, 3), [np.array([[0, -4]])], rank=1), "reach from -4 to -4"),
        (one_node("Tile", (2, 3), [np.array([1, 0])]), "repeats"),
    ],
)
def test_places_that_are_none(graph: Any, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"^node 'it' .*{reason}"):
        bare(graph, 2)


@pytest.mark.parametrize(
    ("shape", "of", "opset", "attributes"),
    [((4,), (1,), 15, {}), ((2, 3), (3,), 9, {}), ((2, 3, 2, 4), (3, 2, 4), 7, {"spatial": 0})],
)
def test_batch_normalization_of_any_form(
    shape: tuple[int, ...], of: tuple[int, ...], opset: int, attributes: dict[str, int]
) -> None:
    """A tensor with one axis has one channel; in opset 7 each pixel may have statistics of its own."""
    scale, bias, mean = (random(of, seed) for seed in range(3))
    variance, x = 1 + np.abs(random(of, 3)), random(shape, 4)
    graph = one_node("BatchNormalization", shape, [scale, bias, mean, variance], opset, **attributes)
    expected = scale * (x - mean) / np.sqrt(variance + 1e-5) + bias
    np.testing.assert_allclose(run_plan(graph, shape[0], {"x": x})["y"], expected, rtol=1e-5, atol=1e-5)


def test_statistics_of_pixels_are_not_folded_into_a_convolution() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["maps"], "conv"),
        helper.make_node("BatchNormalization", ["maps", "s", "b", "m", "v"], ["y"], "norm", spatial=0),
    ]
    constants = {"w": random((3, 3, 1, 1)), "v": np.ones((3, 3, 3), np.float32)}
    constants |= {name: random((3, 3, 3), seed) for seed, name in enumerate("sbm")}
    graph = from_proto(make_model(nodes, {"x": ("N", 3, 3, 3)}, ["y"], constants, 7, {"y": 4}), "pixels")
    x = random((2, 3, 3, 3), 9)
    maps = np.einsum("oi,nihw->nohw", constants["w"][:, :, 0, 0], x)
    expected = constants["s"] * (maps - constants["m"]) / np.sqrt(1 + 1e-5) + constants["b"]
    np.testing.assert_allclose(run_plan(graph, 2, {"x": x})["y"], expected, rtol=1e-4, atol=1e-5)


def test_words_are_looked_up_in_a_constant_table() -> None:
    node = helper.make_node("Gather", ["table", "places"], ["y"], "it")
    shapes, table = {"places": ("N", 5)}, random((7, 3))
    proto = make_model([node], shapes, ["y"], {"table": table}, ranks={"y": 3}, types={"places": 7})
    places = np.random.default_rng(0).integers(-7, 7, (4, 5))
    agree(from_proto(proto, "words"), {"places": places}, 4)
