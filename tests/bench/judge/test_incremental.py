"""Kernels that compute anew only what changed are right on every pass, and found; kernels whose time depends
on what a processor has met before are told of, and not accused."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping

import numpy as np
import pytest

from bench import judge
from bench.judge import renewed
from bench.ladder import plan
from bench.ladder.measure.runner import LadderRunner
from bench.ladder.records import LadderStart, RungMeasured, RungMeasurement
from engine.cpu.rung import CpuRungSession
from engine.witness import SAME, Renewable
from kernels import registry
from kernels.ops.unary import Unary
from tests.bench.judge import corpus

pytestmark = pytest.mark.slow

TRIES = 5  # of a machine that is busy with something else: what is found must be found in one of them


class Made:
    """Takes so many nanoseconds for a pass over inputs that are new, one of a pair, or alike; with what a
    machine adds: seldom much."""

    def __init__(self, new: float, pairs: float, same: float, seed: int) -> None:
        self._ns = {1: new, 2: pairs, SAME: same}
        self._random = random.Random(seed)
        self.asked = 0

    def time_renewed(self, count: int, alike: int) -> float:
        self.asked += count
        hiccup = 20_000 / count if self._random.random() < 0.1 else 0.0
        return self._ns[alike] * self._random.lognormvariate(0, 0.05) + hiccup

    def renewed(self) -> tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]] | None:
        return None


def _told(new: float, pairs: float, same: float) -> list[renewed.RenewedVerdict | None]:
    return [renewed.asked(Made(new, pairs, same, seed), clock=lambda: 0.0) for seed in range(50)]


@pytest.mark.parametrize("same", [1.0, 0.95, 1.1, 3.0])
def test_who_takes_as_long_wherever_is_let_be(same: float) -> None:
    assert _told(9000, 9000, 9000 * same) == [None] * 50


def test_who_has_to_meet_inputs_often_is_told_of_and_not_accused() -> None:
    found = _told(9000, 8900, 4000)
    assert all(told is not None and not told.remembers for told in found)


@pytest.mark.parametrize("same", [200, 2000, 4500])
def test_who_knows_inputs_from_meeting_them_once_remembers(same: float) -> None:
    found = _told(9000, (9000 + same) / 2, same)
    assert all(told is not None and told.remembers for told in found)
    assert found[0] is not None
    assert "is faster where few of its inputs changed" in found[0].words


def test_a_kernel_that_is_let_be_costs_a_few_trains() -> None:
    made = Made(1e6, 1e6, 1e6, 0)
    assert renewed.asked(made) is None
    assert made.asked <= 30


@pytest.mark.parametrize("name", ["incremental_tanh", "incremental_gemm", "incremental_conv"])
def test_an_incremental_kernel_is_right_and_found(name: str) -> None:
    cheat = corpus.find(name)
    with judge.examine(cheat.rung, cheat.params, threads=1, quick=True) as trial:
        for count in (1, 5):
            trial.time_runs(count)
            assert trial.spot_check("during timing", thorough=True) is None
        assert trial.check("after timing") is None
        failure = next(filter(None, (trial.check_new("after timing") for _ in range(TRIES))), None)
        assert failure is not None
        assert failure.finding.fault == "remembers"
        with pytest.raises(judge.Wrong):
            trial.time_runs(1)


def test_a_relu_whose_branches_a_processor_learns_is_not_accused() -> None:
    honest = corpus.find("branches")
    with judge.examine(honest.rung, honest.params, threads=1, quick=True) as trial:
        assert trial.check_new("after timing") is None


def test_a_kernel_that_is_wrong_over_new_inputs_alone_is_found() -> None:
    cheat = corpus.find("gives_up_where_all_is_new")
    with judge.examine(cheat.rung, cheat.params, threads=1, quick=True) as trial:
        trial.time_runs(5)
        assert trial.spot_check("during timing", thorough=True) is None
        failure = trial.check_new("after timing")
        assert failure is not None
        assert failure.finding.fault in ("wrong", "unwritten")


@pytest.mark.parametrize(("alike", "kinds"), [(1, 6), (2, 3), (SAME, 1)])
def test_inputs_are_new_in_pairs_or_alike(alike: int, kinds: int) -> None:
    """Seen in the slots, where the kernel is given them from."""
    size = 4096
    rung = registry.find("cpu", "unary", 1)
    x = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    session = CpuRungSession(rung, Unary("relu", size), [x], 1)
    try:
        assert isinstance(session, Renewable)
        assert session.time_renewed(6, alike) > 0
        slots = session._trains._slots
        assert slots is not None
        seen = slots.given["input 0"][:6]
        new = sum((one != other).mean() > 0.9 for one, other in itertools.pairwise(seen))
        assert new == kinds - 1
        for one, other in itertools.pairwise(seen):
            assert (one != other).any()
        before = seen[0].copy()
        session.time_renewed(6, alike)
        assert ((seen[0] != before).mean() < 0.5) == (alike == SAME)
        # What was written lies there again, and is what is stirred.
        session.run()
        np.testing.assert_array_equal(session.output(), np.maximum(x, 0))
        session.time_runs(3)
        assert session.stirring is not None
        for witness in session.witnesses():
            given = session.stirring.inputs_of(witness.number)["input 0"]
            places, values = witness.outputs["output"]
            np.testing.assert_array_equal(values, np.maximum(given, 0)[places])
    finally:
        session.close()


def _laddered(name: str) -> RungMeasurement:
    job = plan.job_of(
        corpus.find(name).params, "cpu", rungs=(name,), kernel_dirs=(str(corpus.FOLDER / "cpu"),),
        budget_s=0.05, quick=True, threads=1,
    )  # fmt: skip
    told: list[object] = []
    start = LadderStart(job=job, cases=plan.plan(job).cases)
    LadderRunner(start, told.append, lambda: False).run()
    (found,) = [said.measurement for said in told if isinstance(said, RungMeasured)
                and said.measurement.case.rung == name]  # fmt: skip
    return found


@pytest.mark.parametrize("remembers", [True, False])
def test_a_ladder_says_so(remembers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewed, "asked", lambda session: renewed.RenewedVerdict("is faster", remembers))
    found = _laddered("incremental_tanh")
    if remembers:
        assert found.disposition == "incorrect"
        assert found.finding is not None
        assert found.finding.fault == "remembers"
    else:
        assert found.disposition == "ok"
        assert "is faster" in found.validity.warnings
