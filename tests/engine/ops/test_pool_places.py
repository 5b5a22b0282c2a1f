"""Where the maxima of a pool lie, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from bench.measure.answers import oracle
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from kernels.errors import UnsupportedError
from tests.engine.harness import agree, bare, make_model, random, run_plan


def _graph(shape: tuple[int, ...], outputs: list[str], **attributes: Any) -> Graph:
    node = helper.make_node("MaxPool", ["x"], ["y", "places"], "it", **attributes)
    ranks, types = dict.fromkeys(outputs, len(shape)), {"places": TensorProto.INT64}
    return from_proto(make_model([node], {"x": ("N", *shape[1:])}, outputs, ranks=ranks, types=types), "it")


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_places(data: Any) -> None:
    rank = data.draw(st.sampled_from([1, 2, 2]))
    kernel = [data.draw(st.integers(1, 3)) for _ in range(rank)]
    attributes = {
        "kernel_shape": kernel,
        "strides": [data.draw(st.integers(1, 3)) for _ in kernel],
        "dilations": [data.draw(st.integers(1, 2)) for _ in kernel],
        "pads": [data.draw(st.integers(0, k - 1)) for k in kernel * 2],
        "storage_order": data.draw(st.integers(0, 1)),
    }
    shape = (2, 3, *(data.draw(st.integers(5, 8)) for _ in kernel))
    graph = _graph(shape, data.draw(st.sampled_from([["y", "places"], ["places"]])), **attributes)
    x = np.round(random(shape), 1)  # some are equal
    agree(graph, {"x": x}, 2)
    expected = oracle.run(graph, {"x": x}, ["places"])["places"]
    np.testing.assert_array_equal(run_plan(graph, 2, {"x": x})["places"], expected)


def test_places_that_nobody_reads_are_not_looked_for() -> None:
    graph = _graph((2, 3, 6, 6), ["y"], kernel_shape=[2, 2])
    assert [step.op for step in bare(graph, 2).steps] == ["pool"]


def test_places_in_volumes_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"'places' \(the indices of the maxima\) is supported"):
        bare(_graph((2, 3, 4, 4, 4), ["places"], kernel_shape=[2, 2, 2]), 2)
