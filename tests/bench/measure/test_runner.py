"""The loop of every kind of run, with contenders that are played: the order in which they are asked, and that
what one does costs the others nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from bench.measure.outcomes import Incorrect, Restart
from bench.measure.runner import Contender, Runner
from bench.measure.timing import Rules, Timing
from bench.results.messages import CaseStarted, Done, Log, Measured, Start
from bench.results.records import Case, Job, Measurement
from engine.cuda import rung as rung_cuda
from kernels.errors import KernelError, OutOfMemoryError

Deed = Callable[["Played"], None]
STEPS = ("prepare", "multiply", "check_between", "check_again", "record", "close")


class Session:
    facts: dict[str, str] = {"stirring": "no: it is played"}  # noqa: RUF012

    def __init__(self, closed: Callable[[], None]) -> None:
        self._closed, self._open = closed, True

    def close(self) -> None:
        if not self._open:
            raise KernelError("it is closed twice")
        self._open = False
        self._closed()

    def time_runs(self, count: int, cold: bool = False) -> int:
        return 1_000_000 * count


class Played(Contender):
    """Notes its steps; deeds: what it does at one of them, by the step's name."""

    record = Measurement

    def __init__(self, case: Case, job: Job, steps: list[tuple[str, str]], deeds: dict[str, Deed]) -> None:
        super().__init__(case, "cuda" if "cuda" in case.backend else "cpu", job)
        self._steps, self._deeds = steps, deeds

    def at(self, step: str) -> None:
        if self._steps[-1:] != [(self.case.backend, step)]:
            self._steps.append((self.case.backend, step))
        self._deeds.get(step, lambda contender: None)(self)

    def prepare(self) -> None:
        self.first = Session(lambda: self.at("close"))
        self.at("prepare")

    def multiply(self) -> None:
        self.others = [Session(lambda: self.at("close"))]
        self.at("multiply")

    def check_between(self, turn: int) -> None:
        self.at("check_between")

    def check_again(self) -> None:
        self.at("check_again")


class PlayedRunner(Runner):
    record = Measurement
    steps: list[tuple[str, str]]
    deeds: dict[str, dict[str, Deed]]
    groups: Sequence[Sequence[Case]]

    def _groups(self) -> Iterator[Sequence[Case]]:
        yield from self.groups

    def _contender(self, case: Case) -> Contender:
        return Played(case, self._job, self.steps, self.deeds.get(case.backend, {}))

    def _timing(self, ready: dict[str, Contender]) -> dict[str, Any]:
        return {"rules": Rules(warmup_s=0, rewarm_s=0, min_s=0, rounds=2, budget_s=0.05, max_samples=20)}


def recorder(contender: Played, timing: Timing, folder: str, reporter: object) -> None:
    contender.recorded["wall_ns"] = 7.0
    contender.at("record")


PlayedRunner.recorders = (recorder,)


def go(
    *groups: str, stopped: Callable[[], bool] = lambda: False, **deeds: dict[str, Deed]
) -> tuple[dict[str, Measurement], list[Any], list[tuple[str, str]]]:
    """(measurements by backend, all messages, the steps) of groups, each of backends parted by spaces."""
    job = Job(models=("m",), backends=(), budget_s=0.05, instances=2)
    cases = [[Case("m", name, "fp32", 1) for name in group.split()] for group in groups]
    messages: list[Any] = []
    start = Start(job=job, cases=tuple(case for group in cases for case in group))
    made = PlayedRunner(start, messages.append, stopped)
    made.steps, made.groups = [], cases
    made.deeds = {name.replace("_", "-"): own for name, own in deeds.items()}
    made.run()
    found = {m.measurement.case.backend: m.measurement for m in messages if isinstance(m, Measured)}
    return found, messages, made.steps


def fails(error: Exception) -> Deed:
    def deed(contender: Played) -> None:
        raise error

    return deed


def test_each_is_prepared_multiplied_timed_checked_recorded_and_closed() -> None:
    found, messages, steps = go("one other")
    for name in ("one", "other"):
        own = [step for backend, step in steps if backend == name]
        assert list(dict.fromkeys(own)) == list(STEPS)
        assert (found[name].disposition, found[name].wall_ns) == ("ok", 7.0)
        assert set(found[name].instances) == {0, 1}
        assert any("given the same inputs: it is played" in text for text in found[name].validity.warnings)
    assert steps.index(("other", "prepare")) < steps.index(("one", "multiply")), "each has its first before"
    stages = [m.stage for m in messages if isinstance(m, CaseStarted) and m.case.backend == "one"]
    assert list(dict.fromkeys(stages)) == ["prepare", "time", "check"]
    assert messages[-1] == Done()
    assert not any(isinstance(m, Log) for m in messages), "each instance is closed once"


@pytest.mark.parametrize("step", ["prepare", "multiply", "check_again", "record"])
def test_what_one_fails_at_is_its_own(step: str) -> None:
    found, messages, steps = go("one other", one={step: fails(Incorrect(None, "here", "it is off"))})
    assert (found["one"].disposition, found["one"].reason) == ("incorrect", "here: it is off")
    assert found["one"].wall_ns is None, "of what is wrong nothing is kept"
    assert found["other"].disposition == "ok"
    assert ("one", "close") in steps
    assert not any(isinstance(m, Log) for m in messages)


def test_what_no_one_foresaw_is_in_the_log() -> None:
    found, messages, _ = go("one", one={"check_again": fails(ZeroDivisionError("by 0"))})
    assert (found["one"].disposition, found["one"].reason) == ("failed", "ZeroDivisionError: by 0")
    assert "Traceback" in next(m.text for m in messages if isinstance(m, Log))


def test_those_for_which_memory_did_not_suffice_come_together_after_the_others_are_closed() -> None:
    opened: set[str] = set()

    def large(contender: Played) -> None:
        if "one" in opened:
            raise OutOfMemoryError("no room")

    deeds: dict[str, dict[str, Deed]] = {
        "one": {"prepare": lambda c: opened.add("one"), "close": lambda c: opened.discard("one")},
        "large": {"prepare": large},
        "larger": {"prepare": large},
    }
    found, _, steps = go("one large larger", **deeds)
    assert {name: one.disposition for name, one in found.items()} == dict.fromkeys(deeds, "ok")
    after = steps[steps.index(("one", "close")) :]
    assert after.index(("larger", "check_between")) < after.index(("large", "close")), "in one group"


def test_who_has_no_room_alone_is_out_of_memory() -> None:
    found, _, steps = go("large", large={"prepare": fails(OutOfMemoryError("no room"))})
    assert (found["large"].disposition, found["large"].reason) == ("out_of_memory", "no room")
    assert steps == [("large", "prepare"), ("large", "close")]


def test_a_lost_device_takes_the_process_and_not_the_cases_that_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rung_cuda, "lost", lambda: True)
    messages: list[Any] = []
    with pytest.raises(Restart, match="broke the device's context"):
        messages += go("x-cuda", "other", x_cuda={"prepare": fails(KernelError("illegal address"))})[1]
    found, _, _ = go("x-cuda", x_cuda={"prepare": fails(OutOfMemoryError("full"))})
    assert found["x-cuda"].disposition == "out_of_memory", "which a device outlives"


def test_who_stops_has_the_rest_cancelled_and_all_closed() -> None:
    wanted = [True]
    found, messages, steps = go(
        "one other", "third", stopped=lambda: not wanted[0], one={"check_between": lambda c: wanted.clear()
        or wanted.append(False)},
    )  # fmt: skip
    assert {one.disposition for one in found.values()} == {"cancelled"}
    assert len(found) == 3
    assert messages[-1] == Done(reason="cancelled")
    assert {name for name, step in steps if step == "close"} == {"one", "other"}


def test_a_session_that_cannot_be_closed_is_told_and_costs_nothing() -> None:
    found, messages, _ = go("one", one={"close": fails(KernelError("it is stuck"))})
    assert found["one"].disposition == "ok"
    assert any("could not be closed: it is stuck" in m.text for m in messages if isinstance(m, Log))
