"""What clock stamps inside one kernel say of its steps, of stamps that are made up."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from engine.cuda.replays.one_kernel import READING, Taken, _moved
from engine.planning import runs
from engine.planning.planner import plan
from kernels.net.plan import room
from kernels.net.records import Way
from kernels.net.text import one_kernel
from kernels.ops.gemm import Gemm
from tests.engine.planning.test_runs import net

BATCH = 6
CYCLES = (100, 200, 300, 400, 500)  # reading, then a layer each
HERTZ = 2  # cycles a nanosecond


def taken(way: Way, stamps: Callable[[tuple[int, int]], np.ndarray]) -> Taken:
    run = runs.longest(plan(net(), BATCH, "cuda", "fp32"))
    assert run is not None
    lies = room(run.layers, way, 227 << 10)
    assert lies is not None
    kernel = one_kernel(run.layers, way, lies, BATCH, 20)
    assert len(run.layers) + 1 == len(CYCLES)
    return Taken(run, kernel, lambda: None, lambda: stamps(kernel.stamps_shape), (0,) * len(run.steps), None)


@pytest.mark.parametrize(
    "way",
    [Way(1, 1, 96), Way(4, 1, 64), Way(1, 8, 64, tensor=True), Way(2, 8, 64, tensor=True, half="float16")],
)
def test_the_steps_of_one_kernel_move_its_ends_and_its_weights_alone(way: Way) -> None:
    made = plan(net(), BATCH, "cuda", "fp32")
    one = taken(way, alike)
    pieces = one.kernel.parts(one.run.weights(made))
    moved = _moved(one.run, one.kernel, pieces)
    first, last = one.run.steps[0].params, one.run.steps[-1].params
    ends = 4 * math.prod(first.input_shapes[0]), 4 * last.outputs
    assert sum(moved) == sum(ends) + sum(piece.nbytes for piece in pieces)
    assert moved[0] >= ends[0] + pieces[0].nbytes
    assert moved[-1] >= ends[1]
    by_name = dict(zip((step.name for step in one.run.steps), moved, strict=True))
    products = [i for i, layer in enumerate(one.run.layers) if isinstance(layer.params, Gemm)]
    waiting = [one.kernel.room.products[i].at is not None for i in products]
    assert [by_name[name] == 0 for name in ("fc", "scores")] == waiting


def alike(shape: tuple[int, int]) -> np.ndarray:
    found = np.zeros(shape, np.int64)
    found[:, : len(CYCLES)] = CYCLES
    found[:, -2] = 10_000
    found[:, -1] = 10_000 + sum(CYCLES) // HERTZ
    return found


def times(one: Taken) -> dict[str, float]:
    return {part.name: part.time_ns for part in one.parts()}


def test_cycles_become_the_time_of_steps() -> None:
    found = times(taken(Way(1, 1, 96), alike))
    assert list(found) == [READING, "conv", "fc", "scores", "prob"]
    assert list(found.values()) == pytest.approx([cycles / HERTZ for cycles in CYCLES])


def test_a_clock_that_ticks_once_a_microsecond_is_not_taken_at_its_word() -> None:
    """Of a life of 750 ns a quarter of the blocks see no tick, the others one."""

    def coarse(shape: tuple[int, int]) -> np.ndarray:
        found = alike(shape)
        blocks = np.arange(shape[0])
        found[:, -1] = found[:, -2] + np.where(blocks % 4, 1000, 0)
        return found

    found = times(taken(Way(4, 1, 64), coarse))
    assert sum(found.values()) == pytest.approx(sum(CYCLES) / HERTZ)


def test_the_longest_life_is_the_launch_s_and_blocks_that_wait_for_their_team_s_first_say_nothing() -> None:
    def uneven(shape: tuple[int, int]) -> np.ndarray:
        found = alike(shape)
        found[::4][0, :-2] *= 3  # the first team has three times the work
        found[0, -1] = found[0, -2] + 3 * sum(CYCLES) // HERTZ
        found[1::4, 3] = 7_000_000  # another block of a team waits
        found[1::4, -1] = found[1::4, -2] + found[1::4, :-2].sum(axis=1) // HERTZ
        return found

    found = times(taken(Way(4, 1, 64), uneven))
    assert sum(found.values()) == pytest.approx(3 * sum(CYCLES) / HERTZ)
    assert found["fc"] / found[READING] == pytest.approx(3)


def test_one_pass_that_was_held_up_is_not_the_rule() -> None:
    count = 0

    def held_up(shape: tuple[int, int]) -> np.ndarray:
        nonlocal count
        count += 1
        found = alike(shape)
        if count in (1, 7):  # the first of a module, and another
            found[:, 2] *= 1000
            found[:, -1] = found[:, -2] + found[:, :-2].sum(axis=1) // HERTZ
        return found

    assert list(times(taken(Way(1, 1, 96), held_up)).values()) == pytest.approx([c / HERTZ for c in CYCLES])


def test_shares_are_of_the_whole_launch_and_reading_is_the_first_step_s() -> None:
    shares = taken(Way(1, 1, 96), alike).shares()
    assert shares == pytest.approx([300 / 1500, 300 / 1500, 400 / 1500, 500 / 1500])


@pytest.mark.parametrize("what", ["nothing", "backwards", "refused"])
def test_stamps_that_cannot_be_had_or_believed_are_none(what: str) -> None:
    def stamps(shape: tuple[int, int]) -> np.ndarray:
        if what == "refused":
            raise RuntimeError("CUDA_ERROR_NOT_FOUND")
        return np.zeros(shape, np.int64) if what == "nothing" else -alike(shape)

    one = taken(Way(1, 1, 96), stamps)
    assert one.parts() == ()
    assert one.shares() is None
