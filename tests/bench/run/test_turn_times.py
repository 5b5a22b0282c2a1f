"""What a part of a turn is expected to take, where an earlier run had it."""

from __future__ import annotations

import msgspec
import pytest

from bench.run.past import Took, Where
from bench.run.turn_times import ExpectedTimes


def took(model: str, batch: int, times: float = 1.0, samples: float = 2.0) -> Took:
    return Took(
        where=Where(model, batch, "fp32"),
        nbytes=1_000_000,
        budget_s=1.0,
        before=0.4 * times,
        samples=samples,
        after={"a": 2.0 * times, "b": 1.0 * times},
    )


EARLIER = [took(model, batch) for model in ("one", "other") for batch in (1, 8, 64)]


def told(budget: float = 1.0) -> ExpectedTimes:
    return ExpectedTimes(EARLIER, budget, lambda model: 1_000_000)


def test_a_busy_machine_is_slow_with_every_model_and_samples_keep_to_their_budget() -> None:
    busy = told()
    there = Where("other", 8, "fp32")
    before = {part: busy.part(part, there, "a") for part in ("after", "samples")}
    for batch in (1, 8, 64):
        busy.learn(took("one", batch, times=4.0))
    assert busy.part("after", there, "a") > 1.5 * before["after"]
    assert busy.part("samples", there) == pytest.approx(before["samples"], rel=0.25)


def test_a_model_that_is_slower_by_itself_makes_no_other_ones_samples_longer() -> None:
    slow = told()
    own, other = Where("one", 64, "fp32"), Where("other", 64, "fp32")
    before = {where: slow.part("samples", where) for where in (own, other)}
    for batch in (1, 8):
        slow.learn(took("one", batch, samples=6.0))
    assert slow.part("samples", own) > 1.7 * before[own]
    assert slow.part("samples", other) < 1.3 * before[other]


def test_samples_go_by_the_budget_of_this_run() -> None:
    where = Where("one", 8, "fp32")
    assert told(4.0).part("samples", where) - told().part("samples", where) == pytest.approx(3.0, abs=0.8)


def test_another_file_of_the_same_name_is_another_model() -> None:
    where = Where("one", 8, "fp32")
    early = [msgspec.structs.replace(one, samples=0.1) for one in EARLIER[:3]]
    known, changed = (ExpectedTimes(early, 1.0, lambda model, n=n: n) for n in (1_000_000, 1_000_001))  # type: ignore[misc]
    assert known.part("samples", where) < changed.part("samples", where)


def test_beside_other_programs_what_no_budget_holds_takes_longer() -> None:
    where = Where("one", 8, "fp32")
    alone, beside = (ExpectedTimes(EARLIER, 1.0, lambda model: 1_000_000, times) for times in (1.0, 3.0))
    assert beside.part("before", where) == pytest.approx(3 * alone.part("before", where))
    assert beside.part("samples", where) == alone.part("samples", where)
    busy = [msgspec.structs.replace(took("one", 8, times=3.0), slowed=3.0)]
    quiet = [took("one", 8)]
    times = [
        ExpectedTimes(turns, 1.0, lambda model: 1_000_000).part("after", where, "a")
        for turns in (busy, quiet)
    ]
    assert times[0] == pytest.approx(times[1]), "what was kept beside others is known as it is alone"
