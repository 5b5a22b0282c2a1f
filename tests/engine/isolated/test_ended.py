"""Who ends another process while that is stopped is told so, and the other goes on: its session is opened
again in a process of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.judge import Trial
from bench.measure.ladder.entrants import ReferenceContender
from bench.measure.reporter import Reporter
from bench.questions import ladder_plan
from bench.results.ladder_records import RungCase
from engine.cpu.rung import CpuRungSession
from engine.isolated import client, pool
from engine.isolated.forked import starting
from kernels import processes, registry
from kernels.errors import CrashedError, KernelError
from kernels.ops.unary import Unary
from tests.engine.isolated import planted

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="a process is seen to have stopped on Linux"),
    pytest.mark.usefixtures("unkept"),
]
PARAMS = Unary("tanh", 4096)
KILLS = """
    if calls[0] == 2:
        for pid in {pids}:
            os.{how}(pid, signal.SIGKILL)
    work(x, y)
"""


def _rung(folder: Path, name: str, body: str) -> registry.Rung:
    planted.write(folder / name, name, body)
    return registry.find("cpu", "unary", name, [folder / name])


def _session(folder: Path, name: str, body: str) -> CpuRungSession:
    return CpuRungSession(_rung(folder, name, body), PARAMS, [np.zeros(4096, np.float32)], 1)


def _killer(folder: Path, pids: list[int], how: str = "kill", name: str = "kills") -> CpuRungSession:
    return _session(folder, name, KILLS.format(pids=pids, how=how))


def _killer_of(folder: Path) -> CpuRungSession:
    """Of whoever is in the file `pids`."""
    body = f"""
        import json
        at = {str(folder / "pids")!r}
        for pid in json.load(open(at)) if os.path.exists(at) else []:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        work(x, y)
    """
    return _session(folder, "kills", body)


@pytest.mark.parametrize("how", ["kill", "killpg"])
def test_a_rung_of_ours_goes_on_and_its_killer_is_told(tmp_path: Path, how: str) -> None:
    with Trial(registry.find("cpu", "unary", 1), PARAMS, threads=1) as trial:
        assert trial.check("before timing") is None
        trial.time_runs(3)
        pid = trial.session._child.pid  # type: ignore[attr-defined]
        killer = _killer(tmp_path, [pid], how)
        killer.time_runs(3)
        client.rest()
        assert trial.time_runs(3) > 0
        assert trial.session._child.pid != pid  # type: ignore[attr-defined]
        assert trial.spot_check("during timing", thorough=True) is None
        assert trial.check("after timing") is None
        with pytest.raises(KernelError, match=r"kills.* ended the process of our CPU rungs"):
            killer.witnesses()
        killer.close()


def test_killed_between_writing_and_running_it_gives_its_answer(tmp_path: Path) -> None:
    x = np.linspace(-2, 2, 4096, dtype=np.float32)
    victim = CpuRungSession(registry.find("cpu", "unary", 1), PARAMS, [np.zeros(4096, np.float32)], 1)
    victim.bind({"input 0": x})
    victim.poison(0xFF)
    killer = _killer(tmp_path, [victim._child.pid])
    killer.time_runs(3)
    victim.run()
    np.testing.assert_allclose(victim.output(), np.tanh(x), rtol=1e-5)
    assert not victim.strays()
    victim.close()
    killer.close()


@pytest.mark.sampled(4, "long")
def test_onnx_runtime_goes_on(tmp_path: Path) -> None:
    job, case = ladder_plan.job_of(PARAMS, "cpu", threads=1), RungCase(rung="reference", scope="reference")
    reference = ReferenceContender(job, PARAMS, case, Reporter(print, lambda: False), "")
    reference.prepare()
    reference.session.time_runs(2)
    pid = reference.session._child.pid
    reference.session.run()
    before = reference.session.fetch()
    killer = _killer(tmp_path, [pid])
    killer.time_runs(3)
    assert reference.session.time_runs(2) > 0
    assert reference.session._child.pid != pid
    reference.session.run()
    after = reference.session.fetch()
    assert all((after[name] == before[name]).all() for name in before)
    with pytest.raises(KernelError, match="ended the process of ONNX Runtime"):
        killer.witnesses()
    killer.close()
    reference.close()


@pytest.mark.sampled(4, "long")
def test_who_ends_what_others_are_forked_from_is_told(tmp_path: Path) -> None:
    pool.close_all()
    victim = _session(tmp_path, "victim", planted.HONEST)
    victim.run()
    templates = starting.pids()
    if not templates:
        pytest.skip("nothing is forked here")
    killer = _killer(tmp_path, sorted(templates))
    with contextlib.suppress(KernelError):
        killer.time_runs(3)
    # One that was being forked is left to us, and unknown.
    with pytest.raises(KernelError, match=r"(the process that others are forked from|a process of its own)"):
        killer.witnesses()
    # What was forked ends with its template's parent alone; others are forked from a new one.
    another = _session(tmp_path, "another", planted.HONEST)
    another.run()
    for session in (victim, another, killer):
        session.close()


def test_who_stops_what_others_are_forked_from_is_told(tmp_path: Path) -> None:
    victim = _session(tmp_path, "victim", planted.HONEST)
    victim.run()
    if not (templates := starting.pids()):
        pytest.skip("nothing is forked here")
    stops = _session(tmp_path, "stops", f"[os.kill(pid, signal.SIGSTOP) for pid in {templates}]; work(x, y)")
    stops.time_runs(2)
    with pytest.raises(KernelError, match="ended or stopped the process that others are forked from"):
        stops.witnesses()
    pool.close_all()


def test_what_others_are_forked_from_goes_on_if_it_is_stopped_while_its_answer_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.close_all()
    victim = _session(tmp_path, "victim", planted.HONEST)
    victim.run()
    if not (templates := starting.pids()):
        pytest.skip("nothing is forked here")
    ask, stopped = socket.send_fds, []

    def stopped_then_asked(end: socket.socket, *question: Any) -> int:
        """As who stops it just before it could hear."""
        for pid in templates:
            os.kill(pid, signal.SIGSTOP)
            stopped.append(pid)
        return ask(end, *question)

    with monkeypatch.context() as patched:
        patched.setattr(socket, "send_fds", stopped_then_asked)
        began = time.monotonic()
        another = _session(tmp_path, "another", planted.HONEST)
        another.run()
    assert stopped
    assert time.monotonic() - began < starting.WAIT_S / 4
    with pytest.raises(KernelError, match="ended or stopped the process that others are forked from"):
        another.witnesses()
    for session in (victim, another):
        session.close()


def test_who_limits_its_judge_is_told_at_once(tmp_path: Path) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    body = """
        if calls[0] == 2:
            hard = resource.prlimit(os.getppid(), resource.RLIMIT_AS)[1]
            resource.prlimit(os.getppid(), resource.RLIMIT_AS, (1, hard))
        work(x, y)
    """
    limits = _session(tmp_path, "limits", body)
    with contextlib.suppress(KernelError, MemoryError):
        limits.time_runs(3)
    assert "changed the limits of its judge" in limits._child.spoilt
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    limits.close()


@pytest.mark.skipif(not processes.LINUX, reason="limits are watched on Linux")
def test_a_stack_that_was_raised_here_is_nobodys_doing() -> None:
    """As NVIDIA's compiler does in the process that loads it; a lowered one is told."""
    import resource

    from engine.isolated.watched.settings import Watched

    before = resource.getrlimit(resource.RLIMIT_STACK)
    try:
        resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, before[1]))
        watched = Watched([(os.getpid(), "the judge")], os.getpid())
        resource.setrlimit(resource.RLIMIT_STACK, (16 << 20, before[1]))
        assert watched.changed()[0] == []
        assert not watched.put_back()
        resource.setrlimit(resource.RLIMIT_STACK, (4 << 20, before[1]))
        assert watched.changed()[0] == ["the limits (STACK) of the judge"]
        assert resource.getrlimit(resource.RLIMIT_STACK)[0] == 8 << 20
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, before)


def test_one_that_was_killed_and_waits_for_a_turn_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a process that was killed ends only when a core has time for it: here it runs only
    where nobody else wants its core, and others do."""
    monkeypatch.setattr(processes, "DIES_S", 60.0)
    core = min(os.sched_getaffinity(0))
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    rests = subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=-1, stdout=-1)
    try:
        assert rests.stdout is not None
        rests.stdout.readline()
        os.sched_setscheduler(rests.pid, os.SCHED_IDLE, os.sched_param(0))
        for process in (rests, *others):
            os.sched_setaffinity(process.pid, {core})
        assert not processes.ending(rests.pid, "S")
        rests.kill()
        assert processes.ending(rests.pid, "S")
    finally:
        for process in (*others, rests):
            process.kill()
            process.communicate()


def test_one_that_lies_ready_is_not_what_the_next_one_gets(tmp_path: Path) -> None:
    first, killer = _session(tmp_path, "first", planted.HONEST), _killer_of(tmp_path)
    killer.run()
    ready = [child.pid for child in pool._spare]
    assert ready
    (tmp_path / "pids").write_text(str(ready))
    killer.time_runs(2)
    client.rest()
    with pytest.raises(KernelError, match="ended the process of a user's kernel"):
        killer.witnesses()
    fresh = _session(tmp_path, "fresh", planted.HONEST)
    fresh.run()
    assert fresh._child.pid not in ready
    for session in (first, fresh, killer):
        session.close()


def test_two_users_kernels_the_killer_is_told_the_second_time(tmp_path: Path) -> None:
    """Since the other could have ended itself."""
    victim = _session(tmp_path, "victim", planted.HONEST)
    killer = _killer_of(tmp_path)
    for expected in (False, True):
        victim.time_runs(2)
        pids = [victim._child.pid]
        (tmp_path / "pids").write_text(str(pids))
        killer.time_runs(2)
        assert victim.time_runs(2) > 0
        assert victim._child.pid not in pids
        assert bool(killer._child.spoilt) == expected
    victim.close()
    killer.close()


def test_who_ends_itself_while_it_is_stopped_is_not_anothers_victim(tmp_path: Path) -> None:
    body = f"""
        if os.path.exists({str(tmp_path / "now")!r}):
            # A timer's SIGKILL comes at once; any other signal waits until the process goes on. Each pass
            # puts it off: the last has stopped long before, also on a busy machine.
            if not held:
                event = (ctypes.c_int * 16)(0, 0, signal.SIGKILL)
                libc.timer_create(1, event, ctypes.byref(timer := ctypes.c_void_p()))
                held["timer"] = timer
            libc.timer_settime(held["timer"], 0, (ctypes.c_long * 4)(0, 0, 0, 500_000_000), None)
        work(x, y)
    """
    alone = _session(tmp_path, "ends_itself", body)
    others = [_session(tmp_path, f"honest_{i}", planted.HONEST) for i in range(2)]
    for session in (alone, *others):
        session.time_runs(1)
    (tmp_path / "now").touch()

    def turns() -> None:
        for other in (*others, *others):
            alone.time_runs(1)
            pid, until = alone._child.pid, time.monotonic() + 60
            while processes._state(pid) not in ("Z", "") and time.monotonic() < until:
                other.time_runs(5)

    with pytest.raises(CrashedError, match="while it was stopped, was killed by SIGKILL"):
        turns()
    assert not any(other._child.spoilt for other in others)
    assert all(other.witnesses() for other in others)
    for session in (alone, *others):
        session.close()


def test_one_that_was_made_to_go_on_is_stopped_again(tmp_path: Path) -> None:
    victim = _session(tmp_path, "victim", planted.HONEST)
    victim.run()
    pid = victim._child.pid
    goes = _session(tmp_path, "goes", f"os.kill({pid}, signal.SIGCONT); work(x, y)")
    goes.time_runs(2)
    client.rest()
    assert not processes.ending(pid, "T")
    assert processes.stopped(pid)  # or is about to be, once it has a turn
    victim.run()
    os.kill(pid, signal.SIGCONT)
    for session in (victim, goes):
        session.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it")
def test_who_is_stopped_is_known_to_be_before_it_has_a_turn() -> None:
    """By its state alone it was so for 7 of 300 processes, asked right after the signal."""
    with contextlib.ExitStack() as ends:
        for _ in range(10):
            process = ends.enter_context(
                subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
            )
            ends.callback(process.kill)
            assert not processes.stopped(process.pid)
            os.kill(process.pid, signal.SIGSTOP)
            assert processes.stopped(process.pid)
            processes.resume(process.pid)
