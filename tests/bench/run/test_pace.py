"""How long a run may still take: a range at first, then an estimate that counts down and comes true."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.results.messages import CaseStarted, Hello
from bench.results.records import Case, Environment, Job, Measurement
from bench.run import progress
from bench.run.beforehand import Looked
from bench.run.kinds.comparison import KIND
from bench.run.pace import Pace
from bench.run.past import Past
from bench.words import units
from models import names

pytestmark = pytest.mark.usefixtures("own_cache")

BACKENDS = ("engine-cpu", "ort-cpu")
# What workers said on two cores, the repeated left out: [seconds, case, stage or "settled"]. slowed: by how
# much the load of others made all take longer; earlier: a run of the same cases that was recorded before it
# on the same machine.
RECORDED = json.loads(Path(__file__).with_name("recorded_runs.json").read_text(encoding="utf-8"))
SMALL = 250_000  # bytes of a model's file
SIZES = {"alexnet-digits": 228_000_000, "ece408-high": 3_700_000, "large": 100_000_000}
MACHINE = Environment(machine="here", cpu="fast", cores=2)
LOOKED_AT = 0.1  # of a case's time, in which its answers and layers are looked at
Seconds = Callable[[Case], float]


def planned(models: tuple[str, ...], batches: tuple[int, ...]) -> list[list[Case]]:
    return [
        [Case(model=m, backend=b, precision="fp32", batch=batch) for b in BACKENDS]
        for m in models
        for batch in batches
    ]


class Replay:
    """A run on a clock of its own. told: (time, what was said, cases done)."""

    def __init__(
        self, groups: list[list[Case]], budget_s: float = 4.0, again: bool = False, slowed: float = 1.0
    ) -> None:
        """again: it knows the runs before it that knew of others, too."""
        job = Job(models=("net",), backends=BACKENDS, budget_s=budget_s)
        past = Past("compare", job) if again else None
        self.pace = Pace(job, lambda model: SIZES.get(model, SMALL), past)
        self.pace.slowed(slowed)
        self.pace.greeted(MACHINE)
        self.groups = groups
        self.total = sum(map(len, groups))
        self.left = [case for group in groups for case in group]
        self.now = 0.0
        self.told: list[tuple[float, tuple[float, float] | None, int]] = []

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 0.5)
            said = self.pace.left(self.left, self.total, self.now)
            self.told.append((self.now, said, self.total - len(self.left)))

    def go(self, seconds: Seconds, loading: float = 6.0, fail: str = "") -> None:
        seen: set[str] = set()
        for group in self.groups:
            first = group[0].model not in seen
            seen.add(group[0].model)
            for case in group:
                self.pace.started(case, "prepare", self.now)
                self.wait((loading if first else 0.2) / len(group))
                if case.backend == fail:
                    self.settle(case)
            for case in group:
                if case.backend != fail:
                    self.pace.started(case, "time", self.now)
            timed = [case for case in group if case.backend != fail]
            self.wait((1 - LOOKED_AT) * sum(map(seconds, timed)))
            for case in timed:
                self.pace.started(case, "check", self.now)
                self.wait(LOOKED_AT * seconds(case))
                self.settle(case)

    def settle(self, case: Case) -> None:
        self.left.remove(case)
        self.pace.settled(case, self.now)

    def estimates(self, early: bool = False) -> list[tuple[float, float]]:
        """(said, true), from a fifth of the cases on. early: from the start, the middle of the range."""
        end = self.now
        return [
            ((said[0] * said[1]) ** 0.5, end - at)
            for at, said, done in self.told
            if said is not None and (early or done * 5 >= self.total) and end - at > 2
        ]

    def share(self, early: bool = False) -> float:
        """Of the moments, those within a quarter."""
        found = self.estimates(early)
        return sum(abs(said - true) <= 0.25 * true for said, true in found) / len(found)


def test_a_range_holds_before_a_fifth_is_done_and_an_estimate_after() -> None:
    run = Replay(planned(("net",), (1, 2, 4, 8, 16, 32)))
    run.go(lambda case: 4.5)
    for at, said, done in run.told:
        if said is None:
            continue
        low, high = said
        assert (low == high) == (done * 5 >= run.total), f"at {at} s"
        if low < high:
            assert low <= run.now - at <= high
    assert run.told[0][1] is not None, "the job says something before a case is done"


def one_early(case: Case) -> float:
    return 1.5 if case.batch == 8 else 4.5


@pytest.mark.parametrize(
    ("models", "seconds", "fail", "share"),
    [
        (("net",), lambda case: 4.5, "", 0.75),
        (("net", "other"), lambda case: 3.0 if case.model == "net" else 4.0, "", 0.75),
        # One is clear early, which nobody knows beforehand; the others use their budget up.
        (("net",), one_early, "", 0.75),
        # A backend that refuses the model settles at once: it is no turn that was quick.
        (("net",), lambda case: 4.5, "engine-cpu", 0.75),
    ],
)
def test_an_estimate_comes_true_within_a_quarter(
    models: tuple[str, ...], seconds: Seconds, fail: str, share: float
) -> None:
    run = Replay(planned(models, (1, 2, 4, 8, 16, 32, 64)))
    run.go(seconds, fail=fail)
    assert run.share() >= share, run.estimates()


@pytest.mark.parametrize("name", RECORDED)
def test_of_runs_that_were_recorded_four_in_five_moments_are_within_a_quarter(name: str) -> None:
    recorded = RECORDED[name]
    if "earlier" in recorded:
        replayed(recorded["earlier"]).pace.keep()
    run = replayed(recorded)
    assert run.share() >= 0.8, run.estimates()
    if "earlier" in recorded:
        ranges = [(said, run.now - at) for at, said, _ in run.told if said and said[0] < said[1]]
        assert ranges
        assert all(low <= true <= high for (low, high), true in ranges), "told well from the start"


def replayed(recorded: dict[str, Any]) -> Replay:
    cases = [
        Case(model=model, backend=backend, precision="fp32", batch=batch, images=images)
        for model, backend, batch, images in recorded["cases"]
    ]
    run = Replay([cases], recorded["budget_s"], again=True, slowed=recorded["slowed"])
    for at, index, what in recorded["events"]:
        run.wait(at - run.now)
        if what == "settled":
            run.settle(cases[index])
        else:
            run.pace.started(cases[index], what, run.now)
    return run


# Samples end early or late by chance: that all are longer this time is believed after some.
@pytest.mark.parametrize(("slower", "share"), [(0.7, 0.9), (1.0, 0.9), (1.2, 0.8), (1.4, 0.55)])
def test_what_an_earlier_run_took_is_known_from_the_start(slower: float, share: float) -> None:
    """One is clear early; the model is slower than its size tells; and the machine is busier or less."""

    def seconds(case: Case) -> float:
        return 3 * one_early(case)

    groups = planned(("net",), (1, 2, 4, 8, 16, 32, 64))
    first = Replay(groups, again=True)
    first.go(seconds, loading=40.0)
    first.pace.keep()
    again = Replay(groups, again=True)
    again.go(lambda case: slower * seconds(case), loading=slower * 40.0)
    assert again.share() > share > 0.5 > first.share()
    low, high = again.told[0][1] or (0.0, 0.0)
    assert low < again.now / slower < high
    assert again.share(early=True) > 0.95 or slower != 1.0


def test_a_model_that_an_earlier_run_had_tells_of_its_other_batch_sizes_and_budgets() -> None:
    def seconds(case: Case) -> float:
        return 0.08 * case.batch + 2.0

    first = Replay(planned(("large",), (1, 4, 16, 64)), 1.0, again=True)
    first.go(seconds, loading=25.0)
    first.pace.keep()
    for again in (False, True):
        run = Replay(planned(("large",), (2, 8, 32)), 2.0, again)
        run.go(lambda case: seconds(case) + 1.0, loading=25.0)
        low, high = run.told[0][1] or (0.0, 0.0)
        assert (low < run.now < high) == again
    assert run.share() > 0.8, run.estimates()


def test_turns_that_something_cut_short_are_not_kept() -> None:
    (group,) = planned(("net",), (1,))
    for disposition, known in (("cancelled", 0), ("crashed", 0), ("timed_out", 0), ("incorrect", 1)):
        run = Replay([group], again=True)
        for stage in ("prepare", "time"):
            for case in group:
                run.pace.started(case, stage, 1.0)
        run.pace.settled(group[0], 2.0)
        run.pace.settled(group[1], 2.0, disposition)
        run.pace.keep()
        assert len(Past("compare", Job(models=(), backends=())).of(MACHINE)) == known


def test_the_terminal_tells_of_earlier_runs_and_keeps_what_this_one_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = Job(models=("net",), backends=BACKENDS)
    groups = planned(("net",), (1, 2))
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    cases = [case for group in groups for case in group]
    with progress.RunProgress(KIND, 4, 0, cases, job, Past("compare", job)) as shown:
        shown(Hello(environment=MACHINE))
        for group in groups:
            for stage in ("prepare", "time"):
                for case in group:
                    shown(CaseStarted(case=case, stage=stage))
            for case in group:
                clock[0] += 50.0
                shown(Measurement(case=case, disposition="ok"))
    assert [one.where.batch for one in Past("compare", job).of(MACHINE)] == [1, 2]
    with progress.RunProgress(KIND, 4, 0, cases, job) as unknown:
        unknown(Hello(environment=MACHINE))
    assert unknown._pace.left(cases, 4, 0.0) == Pace(job).left(cases, 4, 0.0)
    with progress.RunProgress(KIND, 4, 0, cases, job, Past("compare", job)) as shown:
        shown(Hello(environment=MACHINE))
        low, high = shown._pace.left(cases, 4, 0.0) or (0.0, 0.0)
    assert low < 200 < high < 2 * 200


def test_a_model_that_has_had_no_turn_is_thought_of_by_its_size() -> None:
    small, large = planned(("net",), (1,)), planned(("large",), (1,))
    told = []
    for nbytes in (0, 230_000_000):
        run = Replay(small + large)
        run.pace = Pace(None, lambda model, nbytes=nbytes: nbytes if model == "large" else 0)  # type: ignore[misc]
        run.groups = small
        run.go(lambda case: 4.0)
        said = run.pace.left(run.left, run.total, run.now)
        assert said is not None
        told.append(said[0])
    assert told[1] > 2 * told[0]
    assert names.nbytes("no-such-model.onnx") == 0


def test_a_model_of_the_catalogue_that_is_not_built_yet_has_no_size() -> None:
    assert [name for name in names.shipped() if names.nbytes(name) < 0] == []


def test_turns_that_grow_with_the_batch_are_followed() -> None:
    run = Replay(planned(("net",), (1, 8, 16, 32, 48, 64)))
    run.pace = Pace(Job(models=("net",), backends=BACKENDS, budget_s=1.0), lambda model: 100_000_000)
    run.go(lambda case: 2.0 + 0.1 * case.batch)
    late = [(said, true) for said, true in run.estimates() if true < 0.8 * run.now]
    assert late
    good = sum(abs(said - true) <= 0.25 * true for said, true in late)
    # All but the last seconds: a part that is two of them is thought of by the size of a large model.
    assert good >= 0.8 * len(late), late


def test_within_a_turn_it_counts_down_second_by_second() -> None:
    run = Replay(planned(("net",), (1, 2, 4, 8, 16)))
    run.go(lambda case: 4.5)
    falls = [
        (one[0] - other[0]) - (then - at)
        for (at, one, a), (then, other, b) in zip(run.told, run.told[1:], strict=False)
        if one and other and a == b and a * 5 >= run.total
    ]
    assert sum(abs(fall) < 0.01 for fall in falls) > 0.8 * len(falls)


def test_a_worker_that_is_gone_begins_its_turn_anew() -> None:
    run = Replay(planned(("net",), (1, 2, 4, 8, 16)))
    first = run.groups[0]
    for case in first:
        run.pace.started(case, "time", run.now)
    run.wait(9.0)
    run.pace.interrupted(run.now)
    run.told.clear()
    run.go(lambda case: 4.5, loading=0.2)
    good = [abs(said - true) <= 0.25 * true for said, true in run.estimates()]
    assert sum(good) > 0.9 * len(good)


def test_what_came_at_once_may_be_heard_in_any_order() -> None:
    """A window hears in one go that a case has ended and that the next turn has begun, the latter first."""
    one, other = planned(("net",), (1, 2))
    pace = Pace(Job(models=("net",), backends=BACKENDS))
    for case in one:
        pace.started(case, "prepare", 0.0)
    for case in one:
        pace.started(case, "time", 1.0)
    pace.settled(one[0], 9.0)
    pace.started(other[0], "prepare", 11.0)
    pace.settled(one[1], 11.0)
    pace.started(one[1], "layers", 11.0)
    said = pace.left(other, 4, 11.0)
    assert said is not None
    assert 5 < said[0] == said[1] < 40, "the next turn alone, whose cases are heard of in order"


def test_a_case_that_another_spoke_for_took_no_time_and_tells_of_none() -> None:
    """Whether it is settled within its turn or after it; the next ones' are thought of as those before."""
    groups = planned(("net",), (1, 2, 4))
    said = []
    for last in (False, True):
        pace = Pace(Job(models=("net",), backends=BACKENDS))
        for group in groups[:2]:
            for stage in ("prepare", "time"):
                pace.started(group[0], stage, 0.0)
            for case in group if last else reversed(group):
                pace.settled(case, 10.0)
        assert {backend for turn in pace._turns for backend in turn.after} == {groups[0][0].backend}
        told = pace.left(groups[2], 6, 10.0)
        alone = pace.left(groups[2][:1], 6, 10.0)
        assert told == alone
        said.append(told)
    assert None not in said


def test_what_says_no_budget_tells_nothing_until_a_case_is_done_and_nothing_at_the_end() -> None:
    (group,) = planned(("net",), (1,))
    pace = Pace()
    assert pace.left(group, 2, 1.0) is None
    assert Pace(Job(models=("net",), backends=())).left((), 2, 1.0) is None


def test_how_it_is_said() -> None:
    assert units.left((65, 270)) == "1:05 to 4:30 left"
    assert units.left((130, 130)) == "about 2:10 left"


def test_it_goes_down_while_nothing_is_heard() -> None:
    assert progress.left_words((130, 130), 60) == "about 1:10 left"
    assert progress.left_words((65, 270), 70) == "0:00 to 3:20 left"


def test_the_terminal_s_estimate_knows_what_other_programs_use(monkeypatch: pytest.MonkeyPatch) -> None:
    (group,) = planned(("large",), (64,))
    job = Job(models=("large",), backends=BACKENDS)
    told = []
    for slowed in (1.0, 4.0):
        shown = progress.RunProgress(KIND, 4, 0, group, job)
        shown.looked(Looked(("Another program",), slowed))
        for what in ("prepare", "time"):
            shown(CaseStarted(case=group[0], stage=what))
        shown(Measurement(case=group[0], disposition="ok"))
        told.append(shown._pace.left(group[1:], 2, 0.0))
    assert told[0] is not None
    assert told[1] is not None
    assert told[1][0] > told[0][0]


def test_images_that_take_long_are_told_of_by_how_fast_they_go() -> None:
    """Of 10,000 images a tenth took ten seconds: what the budget alone says would be over in a few."""
    (group,) = planned(("net",), (1,))
    pace = Pace(Job(models=("net",), backends=BACKENDS, budget_s=0.5))
    for stage, at in (("prepare", 0.0), ("time", 1.0), ("check", 2.0)):
        for case in group:
            pace.started(case, stage, at)
    before = pace.left(group, 2, 12.0)
    pace.started(group[0], "check", 2.0)
    pace.progressed(0.1, 12.0)
    after = pace.left(group, 2, 12.0)
    assert before is not None
    assert after is not None
    assert after[0] >= 190 > before[1], "90 s more of this case, and 100 s of the other"
    later = pace.left(group, 2, 22.0)
    assert later is not None
    assert later[0] == pytest.approx(after[0] - 10, rel=0.05), "it counts down"
    pace.settled(group[0], 102.0)
    pace.started(group[1], "check", 102.0)
    pace.progressed(0.5, 152.0)
    last = pace.left(group[1:], 2, 152.0)
    assert last is not None
    assert last[0] >= 50 > 0.3 * last[1]
