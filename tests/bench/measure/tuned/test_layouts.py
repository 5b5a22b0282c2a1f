"""Each way in which a plan's tensors may travel is timed whole; the fastest is kept, and plans follow it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.measure import timing
from bench.measure.tuned import layouts as tuned
from engine.graph.graph import Graph
from engine.machine import driver as cuda_driver
from engine.options import Options
from engine.planning import choices, layouts, planner
from kernels.errors import OutOfMemoryError
from kernels.layouts import PLAIN
from tests.engine.planning.test_layouts import network

HOW = Options(one_kernel=False)
BATCH = 3


class Backend:
    """Whose sessions take so many nanoseconds a pass, by the way (0: its memory does not suffice). wrong: the
    way whose answer is off."""

    def __init__(self, wrong: str = "", **times: float) -> None:
        self.times, self.wrong, self.closed = times, wrong, 0

    def prepare(self, graph: Graph, batch: int, precision: str, how: Options) -> Any:
        taken = self.times[how.layouts]
        if not taken:
            raise OutOfMemoryError("full")

        def close() -> None:
            self.closed += 1

        answer = np.full((batch, 5), 0.2 if how.layouts == self.wrong else 1.0, np.float32)
        return SimpleNamespace(
            time_runs=lambda count, cold=False: int(count * taken), close=close, bind=lambda inputs: None,
            run=lambda: None, synchronize=lambda: None, fetch=lambda: {"y": answer},
        )  # fmt: skip


def on_a_gpu(monkeypatch: pytest.MonkeyPatch, cache: Any) -> None:
    """What is planned and kept is for a GPU, in a cache of the test's own."""
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(cache))
    here = SimpleNamespace(name="GPU", capability=(9, 0))
    monkeypatch.setattr(cuda_driver, "device", lambda: here)
    monkeypatch.setattr(choices, "machine", lambda device, threads: {"device": "GPU"})
    brief = timing.Rules(warmup_s=0.0, rewarm_s=0.0, min_s=0.001, budget_s=0.01)
    monkeypatch.setattr(tuned, "LOOKS", replace(tuned.LOOKS, final=brief, first_s=0.0))


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    on_a_gpu(monkeypatch, tmp_path)


def kept(backend: Any, how: Options = HOW) -> list[str]:
    """The steps that write another layout than the model's, when the ways were timed."""
    graph = network()
    found = tuned.untimed(graph, BATCH, "fp16", how)
    assert found is not None
    tuned.choose(backend, graph, found, how, lambda text, fraction: None)
    assert tuned.untimed(graph, BATCH, "fp16", how) is None, "once is enough"
    made = planner.plan(graph, BATCH, "cuda", "fp16", how)
    return [step.name for step in made.steps if step.writes != PLAIN]


def test_the_fastest_way_is_kept_and_followed() -> None:
    faster = Backend(chosen=1e6, none=2e6)
    assert kept(faster) == ["conv1", "conv2", "conv3"]
    assert faster.closed == 2


def test_no_layouts_are_taken_where_they_are_slower() -> None:
    assert kept(Backend(chosen=2e6, none=1e6)) == []
    unkept = planner.plan(network(), BATCH, "cuda", "fp16", replace(HOW, tuned=False))
    assert any(step.writes != PLAIN for step in unkept.steps), "without times the kernels decide"


@pytest.mark.sampled(4, "long")
def test_a_way_that_gives_other_answers_is_not_taken_however_fast() -> None:
    wrong = Backend(chosen=1e6, none=2e6, wrong="chosen")
    assert kept(wrong) == []
    assert wrong.closed == 2


def test_products_take_other_kernels_where_the_whole_is_faster_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a kernel alone has to lay its input out anew, and is slower for it."""
    chosen = planner.ladder_choice

    def slow(options: Options, *rest: Any, **more: Any) -> planner.Choose:
        choose = chosen(options, *rest, **more)

        def timed(device: str, params: Any, node: str, known: bool, asked: str) -> planner.Chosen:
            if params.op == "conv":
                return planner.Chosen("tensor_fp16", "timed", "fp16")
            return choose(device, params, node, known, asked)

        return timed

    monkeypatch.setattr(planner, "ladder_choice", slow)
    assert kept(Backend(chosen=2e6, all=1e6)) == ["conv1", "conv2", "conv3"]


def test_a_way_without_room_is_passed_over_and_a_small_gain_is_none() -> None:
    assert kept(Backend(chosen=0, none=1e6)) == []


def test_a_small_gain_is_none() -> None:
    assert kept(Backend(chosen=1e6, none=0.995e6)) == ["conv1", "conv2", "conv3"]


def test_nothing_is_timed_where_there_is_nothing_to_choose() -> None:
    graph = network()
    assert tuned.untimed(graph, BATCH, "fp32", HOW) is None
    assert tuned.untimed(graph, BATCH, "fp16", replace(HOW, tuned=False)) is None
    assert tuned.untimed(graph, BATCH, "fp16", replace(HOW, layouts="none")) is None
    named = replace(HOW, rungs=dict.fromkeys(("conv1", "conv2", "conv3"), "tensor_fp16"))
    assert tuned.untimed(graph, BATCH, "fp16", named) is None
    assert layouts.WAYS[0] == "chosen", "what is kept unless another is clearly faster"
