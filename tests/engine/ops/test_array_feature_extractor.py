"""A classifier of scikit-learn ends in the class of each row, by its place in a list of classes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from kernels.errors import UnsupportedError
from tests.engine.harness import agree, bare, make_model, random

ML = "ai.onnx.ml"


def labelled(classes: np.ndarray, domain: str = ML) -> Graph:
    nodes = [
        helper.make_node("ArgMax", ["x"], ["place"], axis=1),
        helper.make_node("ArrayFeatureExtractor", ["classes", "place"], ["row"], "it", domain=domain),
        helper.make_node("Reshape", ["row", "shape"], ["y"]),
    ]
    arrays = {"classes": classes, "shape": np.array([-1])}
    kind = helper.np_dtype_to_tensor_dtype(classes.dtype)
    proto = make_model(nodes, {"x": ("N", 5)}, ["y"], arrays, ranks={"y": 1}, types={"y": kind})
    proto.opset_import.append(onnx.helper.make_opsetid(domain, 1))
    return from_proto(proto, "labelled")


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_each_row_gets_its_class(dtype: str, batch: int) -> None:
    agree(labelled(np.array([7, 3, 9, -1, 4], dtype)), {"x": random((batch, 5))}, batch)


@pytest.mark.parametrize("places", [[1], [3, 0, 1, 1]])
def test_places_that_are_known_are_cut_out(places: list[int]) -> None:
    node = helper.make_node("ArrayFeatureExtractor", ["x", "places"], ["y"], "it", domain=ML)
    proto = make_model([node], {"x": ("N", 4)}, ["y"], {"places": np.array(places)})
    proto.opset_import.append(onnx.helper.make_opsetid(ML, 1))
    graph = from_proto(proto, "cut")
    if len(places) == 1:
        assert [step.op for step in bare(graph, 3).steps] == ["pad"]
    agree(graph, {"x": random((3, 4))}, 3)


def test_an_operator_of_another_domain_is_another_one() -> None:
    with pytest.raises(UnsupportedError, match=r"somebody\.ArrayFeatureExtractor"):
        bare(labelled(np.arange(5), "somebody"), 1)
