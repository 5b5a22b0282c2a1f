"""Compiled steps joined to one call: the same answers whoever did which block."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from onnx import helper

from engine.backend import Options
from engine.backends.engine_cpu import BACKEND, EngineCpuHere
from engine.cpu import program as compiled_pass
from engine.cpu.program import Program
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from kernels import numba_support
from tests.engine.harness import make_model, random

pytestmark = pytest.mark.skipif(numba_support.unavailable() is not None, reason="Numba is not here")


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Layers of different scratch, one tensor that two read, and one in the middle that is an output, too."""
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], "conv1", pads=[2, 2, 2, 2]),
        helper.make_node("MaxPool", ["c1"], ["p1"], "pool1", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Tanh", ["p1"], ["t1"], "tanh1"),
        helper.make_node("Conv", ["t1", "w2"], ["c2"], "conv2"),
        helper.make_node("AveragePool", ["t1"], ["middle"], "side", kernel_shape=[3, 3]),
        helper.make_node("MaxPool", ["c2"], ["p2"], "pool2", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p2"], ["f"], "flatten"),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["d"], "dense", transB=1),
        helper.make_node("Softmax", ["d"], ["y"], "softmax"),
    ]
    shapes = {"w1": (6, 1, 5, 5), "b1": (6,), "w2": (16, 6, 5, 5), "w3": (11, 400), "b3": (11,)}
    constants = {name: random(shape, i) / 4 for i, (name, shape) in enumerate(shapes.items())}
    return from_proto(make_model(nodes, {"x": ("N", 1, 28, 28)}, ["y", "middle"], constants), "joined")


def prepared(graph: Graph, batch: int, threads: int) -> EngineCpuHere:
    session = BACKEND.prepare_here(graph, batch, options=Options(threads=threads))
    session.bind({"x": random((batch, 1, 28, 28), 7)})
    return session


def programs(session: EngineCpuHere) -> list[Program]:
    return [call for call in session._calls if isinstance(call, Program)]


@pytest.mark.parametrize("batch", [1, 2, 7, 33])
def test_answers_are_the_same_to_the_bit_whoever_did_which_block(graph: Graph, batch: int) -> None:
    """Among threads a step ahead of each other, too: neither scratch nor what a block reads is another's."""
    alone = prepared(graph, batch, 1)
    alone.run()
    expected = alone.fetch()
    stepwise = list(alone._by_step)
    for array in alone.answers().values():
        array.fill(np.nan)
    for call in stepwise:
        call()
    for name, array in alone.fetch().items():
        np.testing.assert_array_equal(array, expected[name], "one after the other as joined")
    for threads in (2, 3):
        session = prepared(graph, batch, threads)
        for _ in range(60):
            for array in session.answers().values():
                array.fill(np.nan)
            session.run()
            for name, array in session.fetch().items():
                np.testing.assert_array_equal(array, expected[name])
        session.close()


def test_a_pass_is_one_call_and_keeps_a_blocks_own_to_the_thread(graph: Graph) -> None:
    session = prepared(graph, 33, 2)
    (program,) = programs(session)
    assert len(session._calls) == 1
    assert len(program.steps) == len(session.plan.steps)
    assert program.local_nbytes > 0
    # what lies in the arena alone is read and written there: nothing else of it is touched
    outside = {session.plan.holder(name) for name in (*session.plan.inputs, *session.plan.outputs)}
    inner = [name for name in session.plan.placements if name not in outside]
    assert inner
    spans = [session.plan.placements[name] for name in inner]
    taken = [session.plan.placements[name] for name in outside]
    held = np.zeros(session.plan.arena_nbytes, bool)
    for slot in spans:
        held[slot.offset : slot.offset + slot.nbytes] = True
    for slot in taken:
        held[slot.offset : slot.offset + slot.nbytes] = False
    session._arena[held] = 0x5A
    session.run()
    assert (session._arena[held] == 0x5A).all()


def test_scratch_of_two_steps_planted_to_overlap_is_found(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strides that differ by step let one thread's convolution write into another's: answers then differ."""
    expected = prepared(graph, 64, 1)
    expected.run()
    session = prepared(graph, 64, 2)
    (program,) = programs(session)
    first = compiled_pass.HEAD + program._words[0] * compiled_pass.PHASE
    rows = program._words[first:].reshape(-1, compiled_pass.STEP)
    rows[:, compiled_pass.STRIDE] = 0
    for _ in range(2000):
        session.run()
        if any(not np.array_equal(a, expected.fetch()[name]) for name, a in session.fetch().items()):
            return
    pytest.skip("the other thread never had a core at the same time")


def test_tasks_of_many_small_programs_are_each_done_once(graph: Graph) -> None:
    """Threads asleep and awake, teams of several sizes in turns."""
    sessions = [prepared(graph, batch, threads) for batch in (4, 9) for threads in (2, 4)]
    expected = [session.fetch() for session in map(_run, sessions)]
    for i in range(300):
        session = sessions[i % len(sessions)]
        session.run()
        for name, array in session.fetch().items():
            np.testing.assert_array_equal(array, expected[i % len(sessions)][name])


@pytest.mark.sampled(4, "long")
def test_a_pass_wakes_as_many_threads_as_it_is_worth(graph: Graph) -> None:
    """Others sleep on, and are not waited for; those that it wakes take part soon after it."""
    many = 6
    small, large = prepared(graph, 2, many), prepared(graph, 300, many)
    (few,), (all_of_them,) = programs(small), programs(large)
    assert few.threads < all_of_them.threads == many
    team, bed = (
        few._team,
        slice(
            compiled_pass.BEDS + compiled_pass.BED,
            compiled_pass.BEDS + compiled_pass.BED * many,
            compiled_pass.BED,
        ),
    )
    assert team is all_of_them._team

    def asleep() -> list[int]:
        return [i + 1 for i, word in enumerate(team.state[bed]) if word == compiled_pass.ASLEEP]

    def until(found: Callable[[], bool]) -> bool:
        end = time.monotonic() + 20
        while not found() and time.monotonic() < end:
            time.sleep(0.001)
        return found()

    everybody = list(range(1, many))
    assert until(lambda: asleep() == everybody)
    beyond = set(range(few.threads, many))
    for _ in range(20):
        small.run()
        assert beyond <= set(asleep())
    expected = small.fetch()
    woken: set[int] = set()
    end = time.monotonic() + 60
    while woken < set(everybody) and time.monotonic() < end:
        large.run()
        woken |= set(everybody) - set(asleep())
    assert woken == set(everybody), "each is woken by another, or by the caller"
    assert until(lambda: asleep() == everybody)
    small.run()
    for name, array in small.fetch().items():
        np.testing.assert_array_equal(array, expected[name])


def test_where_the_system_knows_no_such_sleep_threads_look_now_and_then(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    came = threading.Event()

    def serve(address: int, number: int, spin: int) -> None:
        """As compiled code that found nothing to do, and no way to sleep."""
        came.set()

    monkeypatch.setattr(compiled_pass, "serve", serve)
    team = compiled_pass.SpinningTeam(3)
    assert came.wait(20)
    came.clear()
    assert came.wait(20), "it looks again"
    session = prepared(graph, 40, 3)
    (program,) = programs(session)
    monkeypatch.setattr(program, "_team", team)
    session.run()
    expected = _run(prepared(graph, 40, 1)).fetch()
    for name, array in session.fetch().items():
        np.testing.assert_array_equal(array, expected[name], "the caller does it all")


def test_a_pass_leaves_the_smallest_numbers_to_others(graph: Graph) -> None:
    """They are zeros in its kernels, but neither in the thread that called it, nor in NumPy beside it."""
    tiny = np.full(64, 1e-40, np.float32)
    session = prepared(graph, 33, 2)
    beside: list[bool] = []
    ended = threading.Event()

    def compute() -> None:
        while not beside or not ended.is_set():
            beside.append(bool((tiny + tiny > tiny).all()))

    thread = threading.Thread(target=compute)
    thread.start()
    for _ in range(20):
        session.run()
    ended.set()
    thread.join()
    assert (tiny * np.float32(0.5) > 0).all()
    assert all(beside)


def _run(session: EngineCpuHere) -> EngineCpuHere:
    session.run()
    return session


def _steps(session: EngineCpuHere) -> Sequence[compiled_pass.ProgramStep]:
    return programs(session)[0].steps


def test_what_overlaps_in_the_arena_is_not_written_where_another_block_still_reads(graph: Graph) -> None:
    steps = _steps(prepared(graph, 8, 2))
    first, last = steps[0], steps[-1]
    over = last.written._replace(address=first.reads[0].address)
    clashing = [*steps[:-1], compiled_pass.ProgramStep(last.call, last.stride, 1, 1, last.reads, over)]
    kept = {over.name, *(step.written.name for step in steps if step.written.name == "middle")}
    phases = compiled_pass._phases(clashing, 2, kept)
    assert [len(phase.steps) for phase in phases] == [len(steps) - 1, 1]
    assert [len(phase.steps) for phase in compiled_pass._phases(steps, 2, {last.written.name})] == [
        len(steps)
    ]
