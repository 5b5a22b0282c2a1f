"""Kernels that compute anew only what changed are right on every pass, and shown with the time over inputs
that are all new."""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Mapping

import numpy as np
import pytest

from bench import judge
from bench.judge import Trial
from bench.judge.renewed import Renewal
from bench.ladder import plan
from bench.ladder.measure.runner import LadderRunner
from bench.ladder.records import LadderStart, RungMeasured, RungMeasurement
from engine import stirring
from engine.cpu.rung import CpuRungSession
from engine.witness import NEW, SAME, Renewable
from kernels import registry
from kernels.ops.unary import Unary
from tests.bench.judge import corpus

pytestmark = pytest.mark.slow

TURNS = 3
PLANTED = ("incremental_tanh", "incremental_gemm", "incremental_conv", "honest_for_a_while")
WORK_S = 0.008  # of each of them


class Made:
    """Takes so many nanoseconds for a pass over inputs that are new or alike; with what a machine adds:
    seldom much."""

    def __init__(self, new: float, same: float, seed: int) -> None:
        self._ns = {NEW: new, SAME: same}
        self._random = random.Random(seed)
        self.asked = 0

    def time_renewed(self, count: int, alike: int) -> float:
        self.asked += count
        hiccup = 20_000 / count if self._random.random() < 0.1 else 0.0
        return self._ns[alike] * self._random.lognormvariate(0, 0.05) + hiccup

    def renewed(self) -> tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]] | None:
        return None


def _settled(new: float, same: float, seed: int) -> Renewal:
    found = Renewal(clock=lambda: 0.0)
    found.settle(Made(new, same, seed))
    return found


@pytest.mark.parametrize("same", [1.0, 0.95, 1.1, 3.0])
def test_who_takes_as_long_wherever_is_let_be(same: float) -> None:
    assert [_settled(9000, 9000 * same, seed).told for seed in range(50)] == [""] * 50


@pytest.mark.parametrize("same", [200, 2000, 4500, 7000])
def test_whose_time_hangs_on_what_changed_is_told(same: float) -> None:
    found = [_settled(9000, same, seed) for seed in range(50)]
    assert all("is faster where few of its inputs changed" in one.told for one in found)
    for one in found:
        assert statistics.median(one.samples_ns) == pytest.approx(9000, rel=0.15)
        assert len(one.rounds) == len(one.taken)
        assert one.rounds[-1] < len(one.samples_ns)


def test_who_is_honest_for_a_while_after_new_inputs_is_told_by_the_timed_trains() -> None:
    found = Renewal(clock=lambda: 0.0, timed_ns=[7_000.0] * 20)
    found.settle(Made(93_000, 93_000, 0))
    assert "is faster in timed passes, where few inputs changed (7.00 µs)" in found.told
    for timed in (93_000.0, 80_000.0):
        found = Renewal(clock=lambda: 0.0, timed_ns=[timed] * 20)
        found.settle(Made(93_000, 93_000, 0))
        assert found.told == ""
    short = Renewal(clock=lambda: 0.0, timed_ns=[1_000.0] * 20)  # of which some microseconds say nothing
    short.settle(Made(4_000, 4_000, 0))
    assert short.told == ""


def test_a_kernel_that_is_let_be_costs_a_few_trains() -> None:
    made = Made(1e6, 1e6, 0)
    Renewal(clock=lambda: 0.0).settle(made)
    assert made.asked <= 30


def test_rounds_tell_whose_they_are() -> None:
    found = Renewal()
    for instance in (0, 1, 0):
        found.ask(Made(9000, 9000, instance), instance, 1e5)
    assert found.instances == [0, 1, 0]
    assert found.rounds == [0, 2, 4]


def _timed(trial: Trial) -> None:
    """As a ladder does it: turns, checks between them and at the end."""
    for _ in range(TURNS):
        for _ in range(3):
            trial.time_runs(2)
        trial.check_between()
        assert trial.failure is None, trial.failure.finding.reason
        assert trial.broken is None
    assert len(trial.renewal.taken) >= TURNS
    assert trial.check("after timing") is None


@pytest.mark.parametrize("name", PLANTED)
def test_an_incremental_kernel_is_right_and_timed_over_new_inputs(name: str) -> None:
    cheat = corpus.find(name)
    with judge.examine(cheat.rung, cheat.params, threads=1, quick=True) as trial:
        _timed(trial)
        assert trial.check_new("after timing") is None
        # Where it was honest for a while after it saw new inputs, it was so in the timed passes, too.
        shown = trial.renewal.samples_ns if trial.renewal.told else [trial.time_runs(1) for _ in range(3)]
        assert statistics.median(shown) > 0.8e9 * WORK_S
        assert trial.renewal.told or name == "honest_for_a_while"


def test_a_relu_whose_branches_a_processor_learns_is_not_accused() -> None:
    honest = corpus.find("branches")
    with judge.examine(honest.rung, honest.params, threads=1, quick=True) as trial:
        assert trial.check_new("after timing") is None


def test_a_kernel_that_is_wrong_over_new_inputs_alone_is_found() -> None:
    cheat = corpus.find("gives_up_where_all_is_new")
    with judge.examine(cheat.rung, cheat.params, threads=1, quick=True) as trial:
        for _ in range(4):
            trial.time_runs(2)
        failure = trial.spot_check("during timing", thorough=True)
        assert failure is not None
        assert failure.finding.fault in ("wrong", "unwritten")


@pytest.mark.parametrize("alike", [NEW, SAME])
def test_inputs_are_new_or_as_in_timed_passes(alike: int) -> None:
    """Seen in the slots, where the kernel is given them from."""
    size = 4096
    rung = registry.find("cpu", "unary", 1)
    x = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    session = CpuRungSession(rung, Unary("relu", size), [x], 1)
    try:
        assert isinstance(session, Renewable)
        assert session.time_renewed(6, alike) > 0
        way = session._trains._way
        assert way is not None
        slots = way.slots
        seen = slots.given["input 0"][:6]
        for one, other in itertools.pairwise(seen):
            assert ((one != other).mean() > 0.9) == (alike == NEW)
            assert (one != other).any()
        if alike == NEW:
            known = np.isin(seen, x).mean()
            assert known < 0.05, "no value is one of those that were bound"
            assert max(size - len(np.unique(one)) for one in seen) <= 40, (
                "no more twice than among normal values"
            )
            assert np.abs(seen.mean(axis=1)).max() < 0.1
            assert np.abs(seen.std(axis=1) - 1).max() < 0.1
        else:
            changed = (seen != x).sum(axis=1)
            assert (changed <= stirring.places_of(x.shape)).all()
        before = seen[0].copy()
        session.time_renewed(6, alike)
        assert ((seen[0] != before).mean() < 0.5) == (alike == SAME)
        assert (seen[0] != before).any(), "the same few are not changed twice"
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


def _laddered(name: str, l2: str) -> RungMeasurement:
    job = plan.job_of(
        corpus.find(name).params, "cpu", rungs=(name,), kernel_dirs=(str(corpus.FOLDER / "cpu"),),
        budget_s=0.05, quick=True, threads=1, l2=l2,
    )  # fmt: skip
    told: list[object] = []
    start = LadderStart(job=job, cases=plan.plan(job).cases)
    LadderRunner(start, told.append, lambda: False).run()
    (found,) = [said.measurement for said in told if isinstance(said, RungMeasured)
                and said.measurement.case.rung == name]  # fmt: skip
    return found


@pytest.mark.parametrize("l2", ["warm", "cold"])
def test_a_ladder_shows_the_time_over_new_inputs(l2: str) -> None:
    found = _laddered("incremental_tanh", l2)
    if l2 == "cold":  # over new inputs caches are warm
        assert found.disposition == "invalid"
        assert "is faster where few of its inputs changed" in found.reason
        return
    assert found.disposition == "ok"
    assert any("its time is the one over new inputs" in note for note in found.notes)
    assert statistics.median(found.samples_ns) > 0.8e9 * WORK_S
    assert len(found.rounds) > 1
