"""How long a run may still take: a range at first, then an estimate that counts down and comes true."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.results.records import Case, Job
from bench.run import progress
from bench.run.pace import Pace
from bench.words import units
from models import names

BACKENDS = ("engine-cpu", "ort-cpu")
# What workers said on two busy cores, the repeated left out: [seconds, case, stage or "settled"].
RECORDED = json.loads(Path(__file__).with_name("recorded_runs.json").read_text(encoding="utf-8"))
SMALL = 300_000  # bytes of a model's file
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

    def __init__(self, groups: list[list[Case]], budget_s: float = 4.0) -> None:
        self.pace = Pace(Job(models=("net",), backends=BACKENDS, budget_s=budget_s), lambda model: SMALL)
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

    def estimates(self) -> list[tuple[float, float]]:
        """(said, true), from a fifth of the cases on."""
        end = self.now
        return [
            (said[0], end - at)
            for at, said, done in self.told
            if said is not None and done * 5 >= self.total and end - at > 2
        ]


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


@pytest.mark.parametrize(
    ("models", "seconds", "fail", "share"),
    [
        (("net",), lambda case: 4.5, "", 0.75),
        (("net", "other"), lambda case: 3.0 if case.model == "net" else 4.0, "", 0.75),
        # One is clear early, which nobody knows beforehand; the others use their budget up.
        (("net",), lambda case: 1.5 if case.batch == 8 else 4.5, "", 0.6),
        # A backend that refuses the model settles at once: it is no turn that was quick.
        (("net",), lambda case: 4.5, "engine-cpu", 0.75),
    ],
)
def test_an_estimate_comes_true_within_a_quarter(
    models: tuple[str, ...], seconds: Seconds, fail: str, share: float
) -> None:
    run = Replay(planned(models, (1, 2, 4, 8, 16, 32, 64)))
    run.go(seconds, fail=fail)
    found = run.estimates()
    good = sum(abs(said - true) <= 0.25 * true for said, true in found)
    assert good >= share * len(found), found


@pytest.mark.parametrize("name", RECORDED)
def test_of_runs_that_were_recorded_four_in_five_moments_are_within_a_quarter(name: str) -> None:
    recorded = RECORDED[name]
    cases = [
        Case(model=model, backend=backend, precision="fp32", batch=batch, images=images)
        for model, backend, batch, images in recorded["cases"]
    ]
    run = Replay([cases], recorded["budget_s"])
    sizes = {"alexnet-digits": 233_000_000}
    run.pace = Pace(
        Job(models=("net",), backends=BACKENDS, budget_s=recorded["budget_s"]),
        lambda model: sizes.get(model, SMALL),
    )
    for at, index, what in recorded["events"]:
        run.wait(at - run.now)
        if what == "settled":
            run.settle(cases[index])
        else:
            run.pace.started(cases[index], what, run.now)
    found = run.estimates()
    good = sum(abs(said - true) <= 0.25 * true for said, true in found)
    assert good >= 0.8 * len(found), found


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
    run.go(lambda case: 3.0 + 0.3 * case.batch)
    late = [(said, true) for said, true in run.estimates() if true < 0.8 * run.now]
    assert late
    good = sum(abs(said - true) <= 0.25 * true for said, true in late)
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
