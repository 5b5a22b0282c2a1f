"""No kernel is right at a time that is not that of its work, whatever it tries: judged as a ladder judges."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from bench import judge
from bench.judge import Trial, Wrong
from bench.measure.outcomes import outcome
from kernels import registry
from kernels.errors import KernelscopeError
from kernels.ops.unary import Unary
from tests.bench.judge import cheats_cpu
from tests.bench.judge.cheats_cpu import ELSEWHERE, RUNS, WORK_S, WORKS

pytestmark = pytest.mark.slow

PARAMS = Unary("tanh", 4096)
ROUNDS = 4


def judged(folder: Path, name: str) -> tuple[str, float]:
    """What becomes of a kernel, and its median time in seconds: checked, timed and checked again, step by
    step as bench.ladder.measure.runner does."""
    rung = registry.find("cpu", "unary", name, [folder])
    taken: list[float] = []
    try:
        with judge.examine(rung, PARAMS, threads=1, quick=True) as trial:
            assert isinstance(trial, Trial)
            for turn in range(ROUNDS):
                if turn and trial.spot_check("during timing"):
                    break
                taken += [trial.time_runs(3) / 3e9 for _ in range(2)]
            if (
                trial.failure
                or trial.spot_check("during timing", thorough=True)
                or trial.check("after timing")
            ):
                return "incorrect", 0.0
    except Wrong:
        return "incorrect", 0.0
    except KernelscopeError as error:
        return outcome(error)[0], 0.0
    return "ok", statistics.median(taken)


def test_one_that_works_is_right_at_its_time(tmp_path: Path) -> None:
    cheats_cpu.write(tmp_path, "honest", cheats_cpu.HONEST)
    found, seconds = judged(tmp_path, "honest")
    assert found == "ok"
    assert seconds > 0.8 * WORK_S


@pytest.mark.parametrize("name", RUNS)
def test_who_does_not_work_is_not_right(name: str, tmp_path: Path) -> None:
    cheats_cpu.write(tmp_path, name, RUNS[name])
    found, seconds = judged(tmp_path, name)
    if name in WORKS or (name in ELSEWHERE and found == "ok"):
        assert found == "ok"
        assert seconds > 0.8 * WORK_S
    else:
        assert found in ("incorrect", "crashed", "failed")
