"""A rung is checked once it is compiled itself, and what is found of it is told while others are not yet."""

from __future__ import annotations

import threading
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from bench.measure.ladder import ahead
from bench.measure.ladder.runner import LadderRunner
from bench.questions import ladder_plan
from bench.results.ladder_records import RungCase
from bench.results.messages import CaseStarted, Measured, Progress, Start
from bench.run import progress
from bench.run.kinds.ladder import KIND
from bench.run.supervisor import COMPILE, RIGHT
from kernels.compilers import InParallel
from kernels.errors import KernelError
from kernels.ops.conv import Conv
from kernels.registry import Rung

SHAPE = Conv(n=1, c=1, h=8, w=8, m=2, kh=3, kw=3, out_h=6, out_w=6, bias=True)
RUNGS = ("shift_and_add", "im2col")
WAIT_S = 60.0


def test_a_ladder_tells_of_its_first_rung_while_the_second_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = threading.Event()
    second_waited: list[bool] = []

    def compile_rung(rung: Rung, arch: str, defines: object) -> None:
        if rung.name == RUNGS[1]:
            second_waited.append(told.wait(WAIT_S))
            raise KernelError("which its case would say, and not the compiler's process")

    def begin(job: Any, params: Any, cases: Any) -> InParallel:
        rungs = [ahead.rung_of(job, case) for case in cases if case.scope == "rung"]
        items = [(rung, MappingProxyType({"N": size})) for rung in rungs for size in (1, 2)]
        return InParallel(compile_rung, items, "sm_90", 4, apart=False)

    monkeypatch.setattr(ahead, "begin", begin)
    messages: list[Any] = []

    def say(message: Any) -> None:
        messages.append(message)
        if isinstance(message, CaseStarted) and (message.case.rung, message.stage) == (RUNGS[1], COMPILE):
            told.set()  # the first rung is checked by now

    job = ladder_plan.job_of(SHAPE, "cpu", rungs=RUNGS, budget_s=0.02, threads=1, quick=True, instances=1)
    LadderRunner(Start(job=job, cases=ladder_plan.plan(job).cases), say, lambda: False).run()
    assert second_waited == [True, True]
    stages = [(m.case.rung, m.stage) for m in messages if isinstance(m, CaseStarted)]
    first_timed = next(i for i, (_, stage) in enumerate(stages) if stage == "time")
    before = [(rung, stage) for rung, stage in stages[:first_timed] if rung in RUNGS]
    assert before.index((RUNGS[0], RIGHT)) < before.index((RUNGS[1], COMPILE))
    assert (RUNGS[1], RIGHT) in before
    compiled = [m.text for m in messages if isinstance(m, Progress) and "compiled" in m.text]
    assert compiled[-1] == "compiled 2 of 2 rungs"
    found = {m.measurement.case.rung: m.measurement for m in messages if isinstance(m, Measured)}
    assert [found[rung].disposition for rung in RUNGS] == ["ok", "ok"]


def test_what_is_not_compiled_when_the_user_stops_is_compiled_no_more() -> None:
    job = ladder_plan.job_of(SHAPE, "cpu", rungs=RUNGS, quick=True)
    rung, other = (ahead.rung_of(job, case) for case in ladder_plan.plan(job).cases if case.scope == "rung")
    done: list[str] = []
    going, free = threading.Event(), threading.Event()

    def compile_rung(rung: Rung, arch: str, defines: Any) -> None:
        done.append(f"{rung.name} {defines['N']}")
        if rung.name == RUNGS[1]:
            going.set()
            free.wait(WAIT_S)

    class Stop(BaseException):
        pass

    def stop(done: int, total: int) -> None:
        free.set()
        raise Stop

    items = [(rung, {"N": 1}), (other, {"N": 1}), (other, {"N": 2}), (other, {"N": 3})]
    with InParallel(compile_rung, items, "sm_90", 1, apart=False) as begun:
        assert going.wait(WAIT_S)
        assert not begun.compiles(rung)
        assert begun.compiles(other)
        assert begun.rungs == (1, 2)
        begun.wait(stop, rung)  # which is there: nothing is waited for, and nobody told
        with pytest.raises(Stop):
            begun.wait(stop)
    assert done[:2] == [f"{RUNGS[0]} 1", f"{RUNGS[1]} 1"]
    assert len(done) < len(items)


def test_a_run_without_a_terminal_says_now_and_then_what_it_is_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    cases = [RungCase(rung=f"rung_{i}", number=i) for i in (1, 2, 3)]
    with progress.RunProgress(KIND, 3, 0, cases) as shown:
        for case, stages in zip(cases, (("check", RIGHT), (COMPILE,), ("time",)), strict=True):
            for stage in stages:
                shown(CaseStarted(case=case, stage=stage))
            for text in ("compiled 1 of 3 rungs", "compiled 2 of 3 rungs") * (COMPILE in stages):
                clock[0] += 0.6 * progress.SILENT_S
                shown(Progress(text=text, fraction=0.5))
        clock[0] += progress.SILENT_S
        shown(CaseStarted(case=cases[2], stage="time"))
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "[0/3] 1 right so far; compiling rung 02 rung_2: compiled 2 of 3 rungs (50%)",
        "[0/3] timing rung 03 rung_3",
    ]
