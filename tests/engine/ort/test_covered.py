"""Which nodes of a model an optimised node stands for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from engine.graph.importer import from_proto
from engine.ort.profile import covered_nodes
from tests.engine.harness import make_model, random


def test_a_node_whose_first_output_is_absent(tmp_path: Path) -> None:
    """A GRU that is asked for its last state alone."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], "turned", perm=[1, 0, 2]),
        helper.make_node("GRU", ["t", "w", "r"], ["", "h"], "gru", hidden_size=3),
        helper.make_node("Squeeze", ["h", "zero"], ["y"], "last"),
    ]
    constants = {"w": random((1, 9, 4)), "r": random((1, 9, 3)), "zero": np.array([0])}
    graph = from_proto(make_model(nodes, {"x": ("N", 5, 4)}, ["y"], constants), "gru")
    onnx.save(graph.whole_proto(), tmp_path / "optimized.onnx")
    covered = covered_nodes(graph, tmp_path / "optimized.onnx")
    assert covered == {name: (name,) for name in ("turned", "gru", "last")}
