"""Kernels that compute anew only what changed are right on every pass, and shown with the time over inputs
that are all new."""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from bench import judge
from bench.judge import Trial
from bench.measure.answers import renewed
from bench.measure.answers.renewed import Mixing, Renewal
from bench.measure.ladder.runner import LadderRunner
from bench.questions import ladder_plan as plan
from bench.results.ladder_records import RungMeasurement
from bench.results.messages import Measured, Start
from engine import stirring
from engine.cpu.rung import CpuRungSession
from engine.stirring import NEW, SAME, Renewable
from kernels import registry
from kernels.ops.unary import Unary
from tests import sampling
from tests.bench.judge import corpus

pytestmark = pytest.mark.slow

TURNS = 3
TRIES = 3  # ladders, of which one has to tell: see where they are run
MACHINES = 20 if sampling.whole() else 6  # that one is judged on, a seed each
PLANTED = ("incremental_tanh", "incremental_gemm", "incremental_conv", "honest_for_a_while")
WORK_S = 0.008  # of each of them


class Made:
    """Takes so many nanoseconds for a pass over inputs that are new or alike; with what a machine adds:
    seldom much. A pass may be fast or not by what was met before it: `fast` is told how many passes ago
    inputs were all new, and of the last two that were (0: this one), how far apart. Time goes on by what is
    done."""

    def __init__(
        self,
        new: float,
        same: float,
        seed: int,
        fast: Callable[[int, int], bool] = lambda ago, apart: ago > 0,
    ) -> None:
        self._new, self._same, self._fast = new, same, fast
        self._random = random.Random(seed)
        self._ago = self._apart = 1 << 30
        self.asked, self.now = 0, 0.0
        self._alike = SAME
        self.fresh = True  # the next pass is over inputs that are all new

    def clock(self) -> float:
        return self.now

    def chance(self) -> float:
        return self._random.random()

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def renew(self, count: int, alike: int) -> None:
        self._alike = alike
        self.wait(2e-5 * count)  # all values are written

    def time_renewed(self, count: int, cold: bool = False) -> float:
        self.asked += count
        taken = self._passes(count, self._alike) / count
        if self._alike == NEW:
            self.fresh = True
        return taken

    def time_runs(self, count: int, cold: bool = False) -> int:
        return round(self._passes(count, SAME))

    def renewed(self) -> Sequence[tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]]:
        return ()

    def _passes(self, count: int, alike: int) -> float:
        taken = 20_000 if self._random.random() < 0.1 else 0.0
        for left in range(count, 0, -1):
            if alike == NEW or self.fresh:
                self._apart, self._ago = self._ago + 1, 0
            else:
                self._ago += 1
            self.fresh = False
            fast = self._fast(self._ago, self._apart) and alike == SAME
            taken += self._same if fast else self._new
            last = self._ago + left - 1
            if alike == SAME and self._fast(last, self._apart) == fast and self._ago > 0:
                taken += (left - 1) * (self._same if fast else self._new)
                self._ago = last
                break
        taken *= self._random.lognormvariate(0, 0.03)
        self.now += taken / 1e9
        return taken


def _judged(
    made: Made, count: int, turns: int = 10, samples: int = 1, rival_s: float = 0.0
) -> tuple[Renewal, list[float]]:
    """As a ladder does it: turns of so many samples; before every other one a rival takes rival_s. Returns
    the samples, too."""
    renewal = Renewal(made.clock, made.chance, made.wait)

    def afresh() -> None:
        made.fresh = True

    mixing, shown = Mixing(made, renewal, afresh, host=True), []
    for _ in range(turns):
        until = made.now + 0.05
        while made.now < until:
            mixing.warm_runs(count)
        for sample in range(samples):
            made.wait(rival_s * (sample % 2))
            shown.append(mixing.time_runs(count) / count)
        mixing.end_turn()
        afresh()
    renewal.settle(mixing)
    return renewal, shown


def _settled(new: float, same: float, seed: int) -> Renewal:
    return _judged(Made(new, same, seed), 64)[0]


@pytest.mark.sampled
@pytest.mark.parametrize("same", [1.0, 0.95, 1.1, 3.0])
def test_who_takes_as_long_wherever_is_let_be(same: float) -> None:
    assert [_settled(9000, 9000 * same, seed).told for seed in range(MACHINES)] == [""] * MACHINES


@pytest.mark.sampled
@pytest.mark.parametrize("same", [200, 2000, 4500, 7000] if sampling.whole() else [1000, 4500, 7000])
def test_whose_time_hangs_on_what_changed_is_told(same: float) -> None:
    found = [_settled(9000, same, seed) for seed in range(MACHINES)]
    assert all("is faster where few of its inputs changed" in one.told for one in found)
    for one in found:
        assert statistics.median(one.samples_ns) == pytest.approx(9000, rel=0.15)
        assert len(one.rounds) == sum(bool(turn.new_ns) for turn in one.taken)
        assert one.rounds[-1] < len(one.samples_ns)


NS = 20_000.0
STRATEGIES: dict[str, Callable[[int], Callable[[int, int], bool]]] = {
    "honest for a while after new inputs": lambda k: lambda ago, apart: ago > k,
    "honest for a while after two passes over new inputs": lambda k: lambda ago, apart: apart > 1 or ago > k,
    "honest but for a while after new inputs": lambda k: lambda ago, apart: 0 < ago <= k,
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("samples", [1, 20])
@pytest.mark.parametrize("while_", [1, 20, 64, 200, 400, 1000, 2500, 2600, 3000, 5000, 20_000])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nothing_is_gained_by_being_honest_for_a_while(strategy: str, while_: int, samples: int) -> None:
    """Whatever the while is: either its time is that over new inputs, or it was honest when it was timed."""
    for seed in range(4):
        made = Made(NS, NS / 4, seed, STRATEGIES[strategy](while_))
        found, shown = _judged(made, 200, samples=samples)
        time = statistics.median(found.samples_ns if found.told else shown)
        assert time > 0.8 * NS, (seed, found.told)


def test_who_is_slow_after_a_wait_is_told_by_the_timed_trains() -> None:
    def settled(timed: float, new: float) -> str:
        made = Made(new, new, 0)
        found = Renewal(made.clock, made.chance, made.wait)
        mixing = Mixing(made, found)
        found.timed_ns += [timed] * 2000
        found.settle(mixing)
        return found.told

    assert "is faster in timed passes, where few inputs changed (7.00 µs)" in settled(7_000.0, 93_000)
    for timed in (93_000.0, 80_000.0):
        assert settled(timed, 93_000) == ""
    assert settled(1_000.0, 4_000) == ""  # of which some microseconds say nothing


class Paused(Made):
    """One whose passes of a train are fast or not by the seconds that went by since its last train."""

    def __init__(self, seed: int, honest: Callable[[float], bool]) -> None:
        super().__init__(NS, 0.7 * NS, seed)
        self._honest, self._ended = honest, 0.0
        self.after: dict[str, list[float]] = {"mixed in": [], "timed": []}

    def time_renewed(self, count: int, cold: bool = False) -> float:
        self.after["mixed in"].append(self.now - self._ended)
        return super().time_renewed(count)

    def time_runs(self, count: int, cold: bool = False) -> int:
        self.after["timed"].append(self.now - self._ended)
        return super().time_runs(count)

    def _passes(self, count: int, alike: int) -> float:
        each = self._new if alike == NEW or self._honest(self.now - self._ended) else self._same
        taken = count * each * self._random.lognormvariate(0, 0.03)
        self.now += taken / 1e9
        self._ended = self.now
        return taken


RIVAL_S = 0.016
PAUSES: dict[str, Callable[[float], bool]] = {
    "5 ms": lambda s: s > 0.005,
    "1 ms": lambda s: s > 0.001,
    "as long as inputs are made": lambda s: 0.003 < s < 0.005,
    "shorter than a rival's turn": lambda s: s < 0.01,
    "a rival's turn": lambda s: s > 0.01,
    "none": lambda s: s < 0.001,
}


@pytest.mark.parametrize("pause", PAUSES)
@pytest.mark.parametrize("samples", [1, 12])
def test_nothing_is_gained_by_looking_at_pauses(pause: str, samples: int) -> None:
    """A kernel that is honest after such pauses alone: as above."""
    for seed in range(MACHINES):
        made = Paused(seed, PAUSES[pause])
        found, shown = _judged(made, 200, samples=samples, rival_s=RIVAL_S)
        time = statistics.median(found.samples_ns if found.told else shown)
        assert time > 0.8 * NS, (seed, found.told)


def test_before_a_train_that_is_mixed_in_are_the_same_pauses_as_before_a_timed_one() -> None:
    made = Paused(0, lambda s: True)
    mixing = Mixing(made, Renewal(made.clock, made.chance, made.wait), host=True)
    mixing.time_runs(200)
    for part in range(6000):
        made.wait(RIVAL_S if part % 3 == 0 else 0.0)
        mixing.time_runs(200)
    shares = {
        kind: [
            np.mean([low <= s < high for s in seen]) for low, high in itertools.pairwise((0, 1e-3, 1e-2, 1))
        ]
        for kind, seen in made.after.items()
    }
    assert min(map(len, made.after.values())) > 500
    np.testing.assert_allclose(shares["mixed in"], shares["timed"], atol=0.06)


def test_a_kernel_that_is_let_be_costs_a_few_trains() -> None:
    made = Made(1e6, 1e6, 0)
    _judged(made, 4)
    assert made.asked <= 4 * 30


def test_rounds_tell_whose_they_are() -> None:
    made = Made(9000, 9000, 0)
    found = Renewal(made.clock, made.chance, made.wait)
    mixings = [Mixing(made, found) for _ in range(2)]
    for instance in (0, 1, 0):
        while not all(mixings[instance]._found.values()):
            mixings[instance].time_runs(10)
        mixings[instance].end_turn()
    assert found.instances == [0, 1, 0]
    assert found.rounds[0] == 0
    assert found.rounds == sorted({*found.rounds})


def _timed(trial: Trial) -> None:
    """As a ladder does it: turns, checks between them and at the end."""
    for _ in range(TURNS):
        for _ in range(3):
            trial.time_runs(2)
        trial.check_between()
        assert trial.failure is None, trial.failure.finding.reason
        assert trial.broken is None
    assert trial.check("after timing") is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PLANTED)
def test_an_incremental_kernel_is_right_and_timed_over_new_inputs(name: str) -> None:
    cheat = corpus.find(name)
    with judge.examine(cheat.rung, cheat.params, threads=1, quick=True) as trial:
        _timed(trial)
        assert trial.check_new("after timing") is None
        assert len(trial.renewal.samples_ns) >= renewed.HURRIED
        # Where it was honest for a while after it saw new inputs, it was so in the timed passes, too.
        shown = trial.renewal.samples_ns if trial.renewal.told else [trial.time_runs(1) for _ in range(3)]
        assert statistics.median(shown) > 0.8e9 * WORK_S
        assert trial.renewal.told or name == "honest_for_a_while"


@pytest.mark.sampled(4, "long")
def test_a_relu_whose_branches_a_processor_learns_is_not_accused() -> None:
    honest = corpus.find("branches")
    with judge.examine(honest.rung, honest.params, threads=1, quick=True) as trial:
        assert trial.check_new("after timing") is None


def test_a_kernel_that_is_wrong_over_new_inputs_alone_is_found() -> None:
    cheat = corpus.find("gives_up_where_all_is_new")
    with judge.examine(cheat.rung, cheat.params, threads=1, quick=True) as trial:
        for _ in range(4):
            trial.time_runs(2)
        failure = trial.spot_check("during timing", thorough=True) or trial.check_new("after timing")
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
        assert session.time_renewed(6) == 0  # nothing is made
        session.renew(6, alike)
        assert session.time_renewed(6) > 0
        way, renewed_slots = session._trains._way, session._trains._renewed
        assert way is not None
        assert renewed_slots is not None
        slots = renewed_slots.slots if alike == NEW else way.slots
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
        session.renew(6, alike)
        assert session.time_renewed(6) > 0
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
    start = Start(job=job, cases=plan.plan(job).cases)
    LadderRunner(start, told.append, lambda: False).run()
    (found,) = [said.measurement for said in told if isinstance(said, Measured)
                and said.measurement.case.rung == name]  # fmt: skip
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("l2", ["warm", "cold"])
def test_a_ladder_shows_the_time_over_new_inputs(l2: str) -> None:
    """A kernel that saves work where few of its inputs changed is told so, and its time is the one over new
    inputs, with warm caches or cold ones.

    The ladder is brief, and other tests run beside it. What they add to a pass may once be more than what the
    kernel saves: the ladder then sees no difference, and calls the kernel right. This test is not about that
    case, so of three ladders one has to tell. A judge that does not look at new inputs tells in none."""
    for _ in range(TRIES):
        found = _laddered("incremental_tanh", l2)
        if any("over new inputs" in note for note in found.notes):
            break
    assert found.disposition == "ok"
    assert any("its time is the one over new inputs" in note for note in found.notes)
    assert statistics.median(found.samples_ns) > 0.8e9 * WORK_S
    assert len(found.rounds) > 1
