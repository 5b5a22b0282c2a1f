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

    first = {"w0": drawn(4, 3, 3, 3), "w1": drawn(32, 3, 3, 3), "b1": drawn(32, 1)[:, 0]}
    return first | {"w2": drawn(512, 32 * 16 * 16), "w3": drawn(64, 32, 3, 3), "w4": drawn(32, 4, 3, 3)}


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


def longer() -> Graph:
    """Two such pairs, one behind the other, as AlexNet begins; the second's tensor is nearly as large."""
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("LRN", ["c1"], ["n1"], "norm1", size=5),
        helper.make_node("MaxPool", ["n1"], ["p1"], "pool1", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "w3"], ["c2"], "conv2", pads=[1, 1, 1, 1]),
        helper.make_node("LRN", ["c2"], ["n2"], "norm2", size=5),
        helper.make_node("MaxPool", ["n2"], ["y"], "pool2", kernel_shape=[4, 4], strides=[4, 4]),
    ]
    return from_proto(make_model(nodes, {"x": ["N", 3, 32, 32]}, {"y": ["N", 64, 4, 4]}, constants()))


def in_the_middle() -> Graph:
    """The pair is not where the net begins, and what it leaves has room where that is which it reads."""
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c0"], "conv0", pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["c0", "w4"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("LRN", ["c1"], ["n1"], "norm1", size=5),
        helper.make_node("MaxPool", ["n1"], ["p1"], "pool1", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["p1"], ["y"], "mean"),
    ]
    return from_proto(make_model(nodes, {"x": ["N", 3, 32, 32]}, {"y": ["N", 32, 1, 1]}, constants()))


def check_turns(made: Plan) -> None:
    """Walk a pass turn by turn, noting whose each byte of the arena is: none may be read after another
    tensor, or another turn's part of the same, was written over it."""
    owner = np.full(made.arena_nbytes, -1, np.int64)
    known: dict[tuple[str, int], int] = {}
    turns = made.turns
    assert turns is not None

    def tag(name: str, turn: int) -> int:
        between = name in {made.steps[index].output for index in turns.steps[:-1]}
        return known.setdefault((name, turn if between else -1), len(known))

    def launch(index: int, turn: int) -> None:
        step = made.at_once(index)
        read, written = image_turns.launch_offsets(made, index)[turn]
        held = made.holder(step.inputs[0])
        at = made.placements[held].offset + read
        own = owner[at : at + nbytes(step.reads, step.params.input_shapes[0])]
        assert set(own) == {tag(held, turn)}, f"what {step.name} reads in turn {turn} was overwritten"
        at = made.placements[step.output].offset + written
        owner[at : at + image_turns.output_nbytes(step)] = tag(step.output, turn)

    for name in made.inputs:
        place = made.placements[name]
        owner[place.offset : place.offset + place.nbytes] = tag(name, -1)
    for index in range(turns.start):
        launch(index, 0)
    for turn in range(turns.count):
        for index in turns.steps:
            launch(index, turn)
    for index in range(turns.end, len(made.steps)):
        launch(index, 0)


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
    check_turns(made)
    if precision == "fp32":
        check_memory(plain)


def test_more_steps_take_turns_where_that_saves_much_again(
    any_size: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = planned(longer())
    check_turns(made)
    assert made.turns_words == "conv1 to norm2 run 2 images at a time"
    monkeypatch.setattr(image_turns, "MORE_GAIN", 0.9)
    pair = planned(longer())
    check_turns(pair)
    assert pair.turns_words == "conv1 and norm1 run 2 images at a time"
    assert made.arena_nbytes <= 0.85 * pair.arena_nbytes


def test_what_a_turn_writes_is_not_over_what_the_next_reads(
    any_size: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_turns, "MORE_GAIN", 0.9)
    made = planned(in_the_middle(), one_kernel=False)
    assert made.turns is not None
    assert made.turns.start > 0
    check_turns(made)
    monkeypatch.setattr(image_turns, "lasting", lambda plan, lives: lives)
    with pytest.raises(AssertionError, match="overwritten"):
        check_turns(planned(in_the_middle(), one_kernel=False))


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
