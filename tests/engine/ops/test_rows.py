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

few = settings(max_examples=25, deadline=None)
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
