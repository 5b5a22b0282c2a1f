"""Steps that take turns, some images at a time: which, what it saves, and when none do."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from onnx import helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.graph.plan import Plan
from engine.options import Options
from engine.planning import image_turns
from engine.planning.planner import plan
from kernels.layouts import nbytes
from tests.engine.harness import check_memory, make_model

pytestmark = pytest.mark.slow

BATCH = 8


@cache
def constants() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)

    def drawn(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, np.float32) / np.float32(np.sqrt(np.prod(shape[1:])))

    return {"w1": drawn(32, 3, 3, 3), "b1": drawn(32, 1)[:, 0], "w2": drawn(512, 32 * 16 * 16)}


def network(outputs: tuple[str, ...] = ("y",), norm: bool = True) -> Graph:
    """A convolution, an LRN (which no kernel of a whole net has) and a pool, whose tensors shrink, and a
    product."""
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("LRN", ["r1"], ["n1"], "norm1", size=5) if norm
        else helper.make_node("AveragePool", ["r1"], ["n1"], "norm1", kernel_shape=[1, 1]),
        helper.make_node("MaxPool", ["n1"], ["p1"], "pool1", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p1"], ["f1"], "flatten"),
        helper.make_node("Gemm", ["f1", "w2"], ["y"], "fc", transB=1),
    ]  # fmt: skip
    shapes = {"y": ["N", 512], "r1": ["N", 32, 32, 32]}
    return from_proto(
        make_model(nodes, {"x": ["N", 3, 32, 32]}, {name: shapes[name] for name in outputs}, constants())
    )


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_turns, "LEAST_NBYTES", 1)


def planned(graph: Graph, batch: int = BATCH, precision: str = "fp32", **options: object) -> Plan:
    return plan(graph, batch, "cuda", precision, Options(tuned=False, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_what_hands_on_the_largest_tensor_takes_turns(any_size: None, precision: str) -> None:
    made, plain = (
        planned(network(), precision=precision),
        planned(network(), precision=precision, turns=False),
    )
    turns = made.turns
    assert turns is not None
    assert (turns.images, turns.count, plain.turns) == (2, 4, None)
    assert [made.steps[i].name for i in turns.steps] == ["conv1", "norm1"]
    assert made.turns_words == "conv1 and norm1 run 2 images at a time"
    between, all_images = made.placements["r1"], plain.placements["r1"]
    assert between.nbytes * 4 == all_images.nbytes
    assert made.arena_nbytes <= 0.9 * plain.arena_nbytes
    assert made.at_once(0).params.output_shape[0] == 2
    assert made.at_once(2) is made.steps[2]
    if precision == "fp32":
        check_memory(plain)


def test_every_turn_reads_and_writes_its_own_images(any_size: None) -> None:
    made = planned(network())
    first, second = image_turns.launch_offsets(made, 0), image_turns.launch_offsets(made, 1)
    image = 4 * 3 * 32 * 32
    assert first == tuple((turn * 2 * image, 0) for turn in range(4))
    row = nbytes(made.steps[1].writes, made.steps[1].params.output_shape) // BATCH
    assert second == tuple((0, turn * 2 * row) for turn in range(4))
    assert image_turns.launch_offsets(made, 2) == ((0, 0),)


def test_what_gains_nothing_by_turns_takes_none(any_size: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert planned(network(), batch=7).turns is None, "images that four do not divide"
    assert planned(network(("y", "r1"))).turns is None, "what the model gives out"
    assert planned(network(), rungs={"conv1": "naive"}).turns is None, "a kernel that was named"
    assert plan(network(), BATCH, "cpu").turns is None
    monkeypatch.setattr(image_turns, "GAIN", 0.95)
    assert planned(network()).turns is None, "memory that hardly shrinks"


def test_small_tensors_and_steps_that_may_be_one_kernel_take_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert planned(network()).turns is None
    monkeypatch.setattr(image_turns, "LEAST_NBYTES", 1)
    monkeypatch.setattr(image_turns.runs, "MOST_WEIGHTS_NBYTES", 1 << 30)
    assert planned(network(norm=False)).turns is None
    assert planned(network(norm=False), one_kernel=False).turns is not None
