"""Of a net of several precisions each layer alone is held to the bound of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bench.measure.answers import layer_errors, oracle
from engine.backends.engine_cpu import BACKEND
from engine.graph.graph import Graph
from engine.options import Options
from tests.engine.planning.test_layouts import network


class Noting:
    """The engine on the CPU, which notes in which precision it is asked for what. It computes in fp32; the
    answers of node `wrong` are off by a thousandth."""

    name, reference, device = "engine-cuda", "ort-cuda", "cuda"

    def __init__(self, wrong: str = "") -> None:
        self.wrong, self.asked = wrong, dict[str, str]()

    def prepare(self, graph: Graph, batch: int, precision: str, how: Options) -> Any:
        self.asked |= {node.name: precision for node in graph.nodes}
        session = BACKEND.prepare_here(graph, batch, "fp32", Options(threads=1, compiled=False))
        plain = session.fetch

        def fetch() -> dict[str, np.ndarray]:
            by = 1e-3 if self.wrong in self.asked else 0.0
            return {name: array * np.float32(1 + by) for name, array in plain().items()}

        session.fetch = fetch  # type: ignore[method-assign]
        return session


def test_each_layer_is_held_to_the_bound_of_its_own_precision() -> None:
    graph = network()
    random = np.random.default_rng(0)
    golden = oracle.golden(graph, {"x": random.standard_normal((2, 3, 35, 35)).astype(np.float32)})
    mix = {
        "conv1": "fp16",
        "norm1": "fp16",
        "pool1": "fp16",
        "conv2": "tf32",
        "conv3": "fp32",
        "pool3": "fp32",
    }
    how = Options(mix={**mix, "fc4": "fp32"})
    noting: Any = Noting()
    found = layer_errors.isolated(graph, noting, "mixed-1e-3", how, golden)
    assert {node: noting.asked[node] for node in mix} == mix
    bounds = {output: stats.bound for output, stats in found.items()}
    assert bounds == {"r1": 5e-3, "p1": 5e-3, "r2": 2e-3, "c3": 1e-5, "p3": 1e-5, "f3": 1e-5, "y": 1e-5}
    assert all(stats.ok for stats in found.values())
    # What fp16 may be off by, fp32 may not.
    for node, output, right in (("conv1", "r1", True), ("conv3", "c3", False)):
        alone = layer_errors.isolated(
            graph, Noting(node), "mixed-1e-3", replace(how, rungs={node: "naive"}), golden
        )
        assert alone[output].ok == right
