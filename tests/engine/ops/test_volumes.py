"""Convolutions and pools over one to three spatial axes, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.planning.planner import plan
from tests.engine.harness import agree, bare, in_numpy, one_node, random

few = settings(max_examples=14, deadline=None)


def _window(data: Any, rank: int) -> tuple[list[int], dict[str, Any]]:
    """Spatial sizes and a window that fits them."""
    kernel = [data.draw(st.integers(1, 3)) for _ in range(rank)]
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": [data.draw(st.integers(1, k)) for k in kernel],
        "auto_pad": data.draw(st.sampled_from(["NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])),
    }
    if attributes["auto_pad"] == "NOTSET":
        attributes["pads"] = [data.draw(st.integers(0, k - 1)) for k in kernel * 2]
        attributes["dilations"] = [data.draw(st.integers(1, 2)) for _ in kernel]
    return [data.draw(st.integers(2 * k, 7)) for k in kernel], attributes


@few
@given(st.data(), st.sampled_from(["MaxPool", "AveragePool"]), st.integers(1, 3))
def test_pools(data: Any, op_type: str, rank: int) -> None:
    spatial, attributes = _window(data, rank)
    if attributes["auto_pad"] == "NOTSET":
        attributes["ceil_mode"] = data.draw(st.integers(0, 1))
    if op_type == "AveragePool":
        attributes["count_include_pad"] = data.draw(st.integers(0, 1))
    shape = (2, 3, *spatial)
    graph = one_node(op_type, shape, opset=19, **attributes)
    assert len(bare(graph, 2).steps) == max(1, rank - 1)
    agree(graph, {"x": random(shape) - 3}, 2)  # padding that took part as 0 would win a maximum


@few
@given(st.data(), st.sampled_from([1, 3]))
def test_convolutions(data: Any, rank: int) -> None:
    spatial, attributes = _window(data, rank)
    group = data.draw(st.sampled_from([1, 1, 2]))
    constants = [random((2 * group, 2, *attributes["kernel_shape"]), 1)]
    constants += [random((2 * group,), 2)] if data.draw(st.booleans()) else []
    shape = (2, 2 * group, *spatial)
    graph = one_node("Conv", shape, constants, group=group, **attributes)
    agree(graph, {"x": random(shape)}, 2)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_single_channels_along_one_axis_have_the_rung_of_single_channels(device: str) -> None:
    graph = one_node("Conv", (2, 8, 30), [random((8, 1, 5))], group=8, pads=[2, 2])
    (step,) = plan(graph, 2, device).steps
    assert (step.rung if device == "cuda" else in_numpy(step.params).name) == "depthwise"
