"""The oracle is held against ONNX Runtime many groups at a time; what ONNX Runtime fails at is its own."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from bench.measure.answers import cross_check, oracle
from bench.measure.answers.cross_check import Crossed
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.planning import groups, submodel
from tests.engine.harness import make_model, random

few = settings(max_examples=12, deadline=None)
SHAPE = (2, 5, 7, 7)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(oracle, "_kept", type(oracle._kept)())
    monkeypatch.setattr(cross_check, "_known", type(cross_check._known)())


def node(kind: str, index: int) -> onnx.NodeProto:
    """A node of a chain: what ONNX Runtime has no LRN of even size for, and answers to in another shape."""
    name, x, y = f"{kind}{index}", f"t{index}", f"t{index + 1}"
    if kind == "even":
        return helper.make_node("LRN", [x], [y], name, size=4, alpha=0.1)
    if kind == "dilated":
        window = {"kernel_shape": [3, 3], "strides": [1, 1], "dilations": [2, 2]}
        return helper.make_node("MaxPool", [x], [y], name, auto_pad="SAME_UPPER", **window)
    return helper.make_node(kind, [x], [y], name)


def chain(kinds: list[str]) -> Graph:
    nodes = [node(kind, index) for index, kind in enumerate(kinds)]
    return from_proto(
        make_model(nodes, {"t0": ("N", *SHAPE[1:])}, [f"t{len(kinds)}"], ranks={f"t{len(kinds)}": 4})
    )


def crossed(graph: Graph) -> Crossed:
    return cross_check.cross_check(graph, oracle.golden(graph, {"t0": random(SHAPE)}))


@few
@given(
    st.lists(st.sampled_from(["Tanh", "Sigmoid", "Softplus"]), min_size=1, max_size=9),
    st.integers(0, 9),
    st.sampled_from(["even", "dilated"]),
)
def test_what_the_reference_fails_at_is_told_and_doubts_nothing(kinds: list[str], at: int, kind: str) -> None:
    place = min(at, len(kinds))
    assert crossed(chain(kinds)) == Crossed()
    found = crossed(chain([*kinds[:place], kind, *kinds[place:]]))
    assert found.doubt == ""
    assert {"even": "(LRN", "dilated": "(MaxPool"}[kind] in found.unchecked
    assert " more" not in found.unchecked, "the other nodes were held against it"


def test_a_shape_of_the_oracle_that_onnx_denies_is_a_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = chain(["Relu", "dilated", "Tanh"])
    answers = oracle.golden(graph, {"t0": random(SHAPE)})
    output = next(part.output for part in groups.groups(graph, 2) if "dilated1" in part.nodes)
    answers.tensors[output] = answers.tensors[output][..., :6, :6]  # type: ignore[index]
    assert "(MaxPool) it answers in shape (2, 5, 6, 6)" in cross_check.cross_check(graph, answers).doubt


@few
@given(st.integers(2, 40), st.integers(0, 39), st.integers(0, 9))
def test_a_wrong_tensor_is_found_wherever_it_is(count: int, at: int, seed: int) -> None:
    kinds = np.random.default_rng(seed).choice(["Tanh", "Sigmoid", "Softplus"], count)
    graph, place = chain([str(kind) for kind in kinds]), at % count
    answers = oracle.golden(graph, {"t0": random(SHAPE)})
    original = oracle.run

    def run(
        graph: Graph, inputs: dict[str, np.ndarray], names: list[str], *more: object
    ) -> dict[str, np.ndarray]:
        found = original(graph, inputs, names)
        return {name: array + 0.01 * (name == f"t{place + 1}") for name, array in found.items()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(oracle, "run", run)
        found = crossed_of(graph, answers).doubt
    assert f"node {kinds[place]}{place} " in found
    assert "differs from ONNX Runtime" in found


def test_what_looks_at_a_graph_is_linear_in_its_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes walked over, and models made, of a net and of one that is twice as long."""
    walked: list[int] = []
    for count in (100, 200):
        graph = chain(["Tanh", "Sigmoid"] * (count // 2))
        answers = oracle.golden(graph, {"t0": random(SHAPE)})
        counted = [0]

        def counting(original, counted=counted):
            def of(*args, **options):
                counted[0] += 1
                return original(*args, **options)

            return of

        with pytest.MonkeyPatch.context() as patch:
            walks = sys.modules["engine.passes.trace"]
            patch.setattr(walks, "advance", counting(walks.advance))
            patch.setattr(submodel, "from_proto", counting(submodel.from_proto))
            assert crossed_of(graph, answers) == Crossed()
        walked.append(counted[0])
    assert walked[1] <= 2.2 * walked[0] + 10
    assert walked[0] <= 4 * 100


def crossed_of(graph: Graph, answers: oracle.Golden) -> Crossed:
    cross_check._known.clear()
    return cross_check.cross_check(graph, answers)
