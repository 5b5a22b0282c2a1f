"""A backend against itself: what is the same is called the same, what differs is counted, and too much of it
is exit code 1. The sessions are made up, so that nothing here depends on the machine."""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import main
from bench.measure import selfcheck, telemetry, timing
from bench.measure.net_contender import NetContender
from bench.measure.outcomes import Incorrect
from bench.measure.selfcheck import SIDES, Condition, SelfComparison, again, planted
from bench.measure.timing import Rules
from bench.results.records import Case, Job
from bench.results.stats import Interval, Verdict
from kernels.errors import KernelscopeError, UnsupportedError

QUICK = Rules(warmup_s=0.001, rewarm_s=0.0005, min_s=0.005)
CASES = tuple(
    Case(model="lenet5-digits", backend=backend, precision="fp32", batch=batch)
    for batch in (1, 16)
    for backend in ("engine-cpu", "ort-cpu")
)
CONDITIONS = tuple(map(Condition, CASES))


@pytest.fixture(autouse=True)
def _nobody_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else this machine does meanwhile."""
    monkeypatch.setattr(telemetry, "reading", lambda pids, cores: None)


class FakeSession:
    """Passes of `nanoseconds`, and up to `noise` more, drawn from `seed`. How many are taken hangs on the
    clock: with noise, one interval in twenty misses, whatever the seed."""

    def __init__(self, nanoseconds: float, seed: int = 0, broken: bool = False, noise: float = 0.005) -> None:
        self._noise = noise
        self.facts: dict[str, str] = {}
        self._nanoseconds = nanoseconds
        self._random = random.Random(seed)
        self._broken = broken

    def time_runs(self, count: int, cold: bool = False) -> int:
        if self._broken:
            raise RuntimeError("illegal address")
        time.sleep(0.0001)  # so that seconds of samples are a few
        return round(count * self._nanoseconds * (1 + self._noise * self._random.random()))


class FakePairs:
    """In place of Contenders: the other side takes `factor(number)` times as long."""

    def __init__(
        self,
        factor: Callable[[int], float] = lambda number: 1.0,
        broken: bool = False,
        unsupported: str = "",
        noise: float = 0.005,
    ) -> None:
        self._noise = noise
        self._unsupported = unsupported
        self.opened: list[Case] = []
        self.open = 0
        self._factor = factor
        self._broken = broken

    @contextlib.contextmanager
    def __call__(self, case: Case) -> Iterator[Mapping[str, Any]]:
        if case.backend == self._unsupported:
            raise UnsupportedError(f"no {case.backend}")
        number = len(self.opened)
        self.opened.append(case)
        self.open += 1
        try:
            factors = (1.0, self._factor(number))
            yield {
                side: FakeSession(50_000.0 * factor, 2 * number + i, self._broken and i == 1, self._noise)
                for i, (side, factor) in enumerate(zip(SIDES, factors, strict=True))
            }
        finally:
            self.open -= 1


def test_what_is_the_same_is_called_the_same_and_the_cases_take_turns() -> None:
    pairs = FakePairs()
    found = list(selfcheck.run(CONDITIONS, 6, QUICK, pairs))
    assert [comparison.case for comparison in found] == [*CASES, *CASES[:2]] == pairs.opened
    assert {comparison.verdict for comparison in found} == {Verdict.SAME}
    assert pairs.open == 0
    assert selfcheck.summary(found).largest_off < 0.005
    alike = list(selfcheck.run(CONDITIONS, 6, QUICK, FakePairs(noise=0.0)))
    assert selfcheck.summary(alike).passed


def test_a_difference_is_seen_and_told_by_its_sign() -> None:
    slow = selfcheck.compare(CONDITIONS[0], QUICK, FakePairs(lambda number: 1.1))
    fast = selfcheck.compare(CONDITIONS[0], QUICK, FakePairs(lambda number: 0.9))
    assert slow.verdict is Verdict.FASTER  # the one against the other, which takes longer
    assert slow.off == pytest.approx(1 - 1 / 1.1, rel=0.1)
    assert fast.verdict is Verdict.SLOWER


@pytest.mark.parametrize(
    ("comparisons", "missed", "passed"),
    [(40, 0, True), (40, 4, True), (40, 5, False), (200, 15, True), (200, 16, False), (1, 1, False)],
)
def test_as_many_may_miss_as_chance_makes_of_one_in_twenty(
    comparisons: int, missed: int, passed: bool
) -> None:
    """5 of 40 and 16 of 200 come about in less than one of twenty checks where one in twenty is the truth."""
    good, bad = Interval(1.03, 1.0, 1.06), Interval(1.03, 1.001, 1.06)
    found = [
        SelfComparison(case=CASES[0], ratio=bad if i < missed else good, verdict=Verdict.UNCLEAR)
        for i in range(comparisons)
    ]
    came_to = selfcheck.summary(found)
    assert came_to.missed == missed
    assert came_to.wrong == 0
    assert came_to.passed is passed
    assert sum(came_to.verdicts.values()) == comparisons
    assert came_to.largest_off == pytest.approx(0.03)


def test_verdicts_that_are_wrong_are_counted() -> None:
    verdicts = [Verdict.FASTER, Verdict.SLOWER, Verdict.SAME, Verdict.UNCLEAR]
    ratio = Interval(1.05, 1.03, 1.06)
    assert (
        selfcheck.summary([SelfComparison(case=CASES[0], ratio=ratio, verdict=v) for v in verdicts]).wrong
        == 2
    )


def test_what_a_backend_does_not_support_is_left_out_and_told() -> None:
    pairs = FakePairs(unsupported="engine-cpu")
    told: list[str] = []
    found = list(selfcheck.run(CONDITIONS, 4, QUICK, pairs, refused=told.append))
    assert [comparison.case for comparison in found] == [CASES[1], CASES[3], CASES[1], CASES[3]]
    assert told == ["no engine-cpu", "no engine-cpu"]
    with pytest.raises(UnsupportedError):
        list(selfcheck.run(CONDITIONS[:1], 4, QUICK, pairs))


def test_going_on_makes_the_comparisons_that_are_missing() -> None:
    first = list(selfcheck.run(CONDITIONS, 3, QUICK, FakePairs()))
    rest = list(selfcheck.run(CONDITIONS, 8, QUICK, FakePairs(), done=first))
    assert [comparison.case for comparison in (*first, *rest)] == [*CASES, *CASES]


def test_instances_take_the_rounds_in_turn_and_their_differences_are_known() -> None:
    """Sessions that land at other speeds: as many on either side are told from a difference of the sides."""
    speeds = (1.0, 1.03, 0.98, 1.02, 0.97)

    @contextlib.contextmanager
    def pair(case: Case) -> Iterator[Mapping[str, Any]]:
        sides = (speeds, speeds[::-1])
        yield {
            side: [FakeSession(50_000.0 * factor, i) for i, factor in enumerate(factors)]
            for side, factors in zip(SIDES, sides, strict=True)
        }

    found = selfcheck.compare(CONDITIONS[0], QUICK, pair)
    assert not found.missed
    assert found.verdict is Verdict.UNCLEAR
    assert found.stop_reason == "exhausted"
    for ratio, one, other in zip(found.round_ratios, speeds, speeds[::-1], strict=False):
        assert ratio == pytest.approx(one / other, rel=0.01)


def test_a_session_that_breaks_is_told_in_a_sentence_and_closed() -> None:
    pairs = FakePairs(broken=True)
    with pytest.raises(KernelscopeError, match=r"lenet5-digits on engine-cpu.*illegal address"):
        selfcheck.compare(CONDITIONS[0], QUICK, pairs)
    assert pairs.open == 0


@pytest.mark.parametrize(("factor", "code"), [(1.0, 0), (1.1, 1)])
def test_the_command_prints_a_table_and_its_verdict_is_its_exit_code(
    factor: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        selfcheck, "Contenders", lambda job, progress, instances: FakePairs(lambda number: factor, noise=0.0)
    )
    monkeypatch.setattr(selfcheck, "rules", lambda held: replace(QUICK, budget_s=held.job.budget_s))
    line = ["selfcheck", "lenet5-digits", "--backend", "engine-cpu", "--backend", "ort-cpu", "--batch", "1"]
    assert main.main([*line, "--times", "2", "--budget", "5"]) == code
    out, err = capsys.readouterr()
    assert "[2/2] lenet5-digits on ort-cpu, fp32, batch 1: " + ("as fast" if code == 0 else "faster") in err
    cells = next(line for line in out.splitlines() if line.startswith("all")).split()
    assert cells[1:7] == ["2", *(["2", "0", "0", "0", "0"] if code == 0 else ["0", "0", "2", "0", "2"])]
    assert ("passed" if code == 0 else "failed") in out.splitlines()[-1]


def test_a_cancelled_check_shows_what_there_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def factor(number: int) -> float:
        if number == 1:
            raise KeyboardInterrupt
        return 1.0

    monkeypatch.setattr(selfcheck, "Contenders", lambda job, progress, instances: FakePairs(factor))
    line = ["selfcheck", "--backend", "engine-cpu", "--batch", "1", "--times", "3", "--budget", "0.05"]
    assert main.main(line) == 130
    out, err = capsys.readouterr()
    assert "engine-cpu" in out
    assert "cancelled" in err


def test_many_comparisons_are_spread_over_several_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[int] = []

    def contenders(job: Job, progress: object, instances: int) -> FakePairs:
        made.append(instances)

        def factor(number: int) -> float:
            if number == 2:
                raise KeyboardInterrupt
            return 1.0

        return FakePairs(factor, noise=0.0)

    monkeypatch.setattr(selfcheck, "Contenders", contenders)
    monkeypatch.setattr(timing, "Rules", lambda budget_s, cold: replace(QUICK, budget_s=budget_s, cold=cold))
    file = tmp_path / "check.json"
    line = ["selfcheck", "--backend", "engine-cpu", "--batch", "1,16", "--times", "5", "--instances", "2"]
    assert main.main([*line, "--budget", "0.05", "--out", str(file)]) == 130
    assert f"--resume {file}" in capsys.readouterr().err
    first = selfcheck.held_in(file)
    assert (len(first.comparisons), first.times, first.instances) == (2, 5, 2)
    assert main.main(["selfcheck", "--resume", str(file), "--times", "4", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert "passed" in err
    then = selfcheck.held_in(file)
    assert then.comparisons[:2] == first.comparisons
    assert [comparison.case.batch for comparison in then.comparisons] == [1, 16, 1, 16]
    assert made == [2, 2]
    # What is complete is shown as a page, on any machine: nothing is prepared for it.
    monkeypatch.setattr(selfcheck, "plan", lambda *_: pytest.fail("planned"))
    assert main.main(["selfcheck", "--resume", str(file), "--format", "markdown"]) == 0
    page = capsys.readouterr().out
    assert "`python main.py selfcheck --backend engine-cpu" in page.replace("lenet5-digits ", "")
    assert "| all |  |  | 4 |" in page
    told = json.loads(out)
    assert told["environment"]["kernelscope"]
    assert [len(c["round_ratios"]) > 0 for c in told["comparisons"]] == 4 * [True]
    assert main.main([*line, "--out", str(file)]) == 2, "what is there already is not written over"
    assert main.main(["selfcheck", "--resume", str(file), "--batch", "4"]) == 2
    assert "leave --batch away" in capsys.readouterr().err
    file.write_text('{"job": 3}')
    assert main.main(["selfcheck", "--resume", str(file)]) == 2
    assert "is broken" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("selfcheck --times 0", "--times 0 is out of range; 1 or more works"),
        ("selfcheck lenet5-digit", "did you mean 'lenet5-digits'"),
        ("selfcheck --backend engine-cp", "did you mean 'engine-cpu'"),
        ("selfcheck --batch 0", "out of range"),
    ],
)
def test_mistakes_are_told_in_a_sentence(line: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(line.split()) == 2
    out, err = capsys.readouterr()
    assert told in err
    assert err.count("\n") == 1
    assert out == ""


@pytest.mark.parametrize("backend", ["engine-cpu", "ort-cpu"])
def test_contenders_are_two_sessions_that_answer_alike_and_are_closed(backend: str) -> None:
    job = Job(models=("lenet5-digits",), backends=(backend,), batches=(3,), threads=1)
    (case,) = selfcheck.plan(job)
    assert case.images == 0
    pairs = selfcheck.Contenders(job, lambda text, fraction: None, instances=2)
    with pairs(case) as sessions:
        assert tuple(sessions) == SIDES
        assert all(len(of) >= 2 for of in sessions.values())
        every = [session for of in sessions.values() for session in of]
        assert len({id(session) for session in every}) == len(every)
        (one, *_), (other, *_) = sessions.values()
        assert one.time_runs(1) > 0
        one.run()
        for name, array in one.fetch().items():
            assert array.shape[0] == 3
            np.testing.assert_array_equal(array, other.fetch()[name])


def test_a_timed_pass_that_was_wrong_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object) -> None:
        raise Incorrect(None, "during timing", "a timed pass left what its inputs do not give")

    monkeypatch.setattr(NetContender, "_check_timed", wrong)
    job = Job(models=("lenet5-digits",), backends=("engine-cpu",), threads=1)
    pairs = selfcheck.Contenders(job, lambda text, fraction: None)
    with (
        pytest.raises(KernelscopeError, match="incorrect: during timing: a timed pass"),
        pairs(selfcheck.plan(job)[0]) as them,
    ):
        next(iter(them.values()))[0].time_runs(1)


def test_a_case_that_a_backend_refuses_is_told_in_a_sentence() -> None:
    job = Job(models=("lenet5-digits",), backends=("engine-cpu",), precisions=("fp16",))
    with (
        pytest.raises(KernelscopeError, match="lenet5-digits on engine-cpu, fp16, batch 1: unsupported: "),
        selfcheck.Contenders(job, lambda text, fraction: None)(selfcheck.plan(job)[0]),
    ):
        pass


def test_what_is_planted_has_to_be_found_and_is_judged_again_from_its_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(selfcheck, "Contenders", lambda job, progress, instances: FakePairs())
    monkeypatch.setattr(selfcheck, "rules", lambda held: replace(QUICK, budget_s=0.05, width=0.0))
    path = tmp_path / "kept.json"
    line = ["selfcheck", "lenet5-digits", "--backend", "ort-cpu", "--batch", "1", "--whole"]
    assert main.main([*line, "--times", "4", "--slower", "1,2", "--busy", "0,1", "--out", str(path)]) == 0
    held = selfcheck.held_in(path)
    assert {(it.slower, it.busy) for it in held.comparisons} == {(1, 0), (2, 0), (1, 1), (2, 1)}
    for it in held.comparisons:
        assert it.verdict is (Verdict.SLOWER if it.slower == 2 else Verdict.SAME)
        assert not it.wrong
        assert it.off < 0.01
        assert [len(side.samples_ns) > 5 for side in it.sides] == [True, True]
    wrong = msgspec.structs.replace(held.comparisons[0], verdict=Verdict.SLOWER)
    denied = msgspec.structs.replace(held.comparisons[-1], verdict=Verdict.SAME, slower=2.0)
    assert selfcheck.summary([wrong, denied]).wrong == 2
    capsys.readouterr()
    assert main.main(["selfcheck", "--rejudge", str(path)]) == 0
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines()[2:]]
    assert len(rows) == 4 * len(again.ways())
    assert {(row[3].strip(), row[-2].strip()) for row in rows} == {("1×", "1"), ("2×", "1")}, "all right"


def test_a_planted_slowdown_takes_the_time_that_it_says() -> None:
    slowed = planted.Slowed(FakeSession(5e5, noise=0.0), 2.25)
    passes = [slowed.time_runs(4) / 4 for _ in range(5)]
    assert min(passes) == pytest.approx(2.25 * 5e5, rel=0.02)
