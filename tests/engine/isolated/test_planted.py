"""No kernel gains by how it is timed: what it runs in does nothing that is taken off, is stopped while its
inputs are made, and leaves others alone."""

from __future__ import annotations

import contextlib
import mmap
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bench import judge
from bench.measure.outcomes import outcome
from engine.isolated import client, empty, pool
from engine.isolated.memory import Block
from engine.isolated.watched import stops
from engine.rung_devices import RungSession, prepare
from engine.stirring import NEW, SAME, Renewable, Witnessed
from kernels import confine, processes, registry
from kernels.errors import KernelError, KernelscopeError
from kernels.ops.unary import Unary
from tests.engine.isolated import both_ways, planted
from tests.engine.isolated.planted import NO_USE, WORK_S, WRONG

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="a process is seen to have stopped on Linux")
PARAMS = Unary("tanh", 4096)


def judged(folder: Path, name: str, body: str) -> tuple[str, str, float]:
    """What becomes of a kernel and why, and its median time in seconds: checked, timed and checked again as a
    ladder does."""
    planted.write(folder, name, body)
    rung = registry.find("cpu", "unary", name, [folder])
    taken: list[float] = []
    try:
        with judge.examine(rung, PARAMS, threads=1, quick=True) as trial:
            assert isinstance(trial, judge.Trial)
            for turn in range(3):
                if turn and trial.spot_check("during timing"):
                    break
                client.rest()
                taken += [trial.time_runs(3) / 3e9 for _ in range(2)]
            if (
                trial.failure
                or trial.spot_check("during timing", thorough=True)
                or trial.check("after timing")
            ):
                assert trial.failure is not None
                return "incorrect", trial.failure.finding.reason, 0.0
    except judge.Wrong as wrong:
        return "incorrect", str(wrong), 0.0
    except KernelscopeError as error:
        return *outcome(error), 0.0
    return "ok", "", statistics.median(taken)


def test_an_honest_one_is_right_at_its_time(tmp_path: Path) -> None:
    found, why, seconds = judged(tmp_path, "honest", planted.HONEST)
    assert found == "ok", why
    assert seconds > 0.95 * WORK_S


@LINUX
@pytest.mark.sampled(3)
@pytest.mark.usefixtures("unkept")
@pytest.mark.parametrize("name", WRONG)
def test_who_gains_is_found(name: str, tmp_path: Path) -> None:
    before = processes.children(os.getpid())
    found, why, _ = judged(tmp_path, name, WRONG[name])
    assert found in ("incorrect", "failed", "crashed"), found
    if "helper" in name:
        assert found in ("incorrect", "crashed") or "started a process of its own" in why
        known = before | processes.OURS | client._known()
        assert not processes.children(os.getpid()) - known, "it is ended"
    if "timer" in name and found == "failed":
        assert "had itself go on" in why
    if "judge" in name or "rivals" in name:
        assert "a kernel leaves others alone" in why


@LINUX
@pytest.mark.parametrize("name", [name for name in WRONG if "helper" in name or "timer" in name])
def test_what_would_go_on_is_not_to_be_started(name: str, tmp_path: Path) -> None:
    planted.write(tmp_path, name, WRONG[name])
    rung = registry.find("cpu", "unary", name, [tmp_path])
    session = prepare(rung, PARAMS, [np.zeros(4096, np.float32)], 1)
    pid = session._child.pid  # type: ignore[attr-defined]
    if confine.missing_restrictions(pid):
        pytest.skip("this system has no seccomp")
    with contextlib.suppress(KernelError):  # some try again and again
        session.time_runs(20)
    assert not processes.children(pid)
    assert "not enforced" not in session.facts
    session.close()


@LINUX
@pytest.mark.parametrize("name", NO_USE)
def test_what_has_no_use_is_shown_with_the_time_of_the_work(name: str, tmp_path: Path) -> None:
    found, _, seconds = judged(tmp_path, name, NO_USE[name])
    assert found in ("ok", "incorrect", "failed")
    if found == "ok":
        assert seconds > 0.95 * WORK_S


@LINUX
def test_what_was_changed_is_as_before(tmp_path: Path) -> None:
    this = os.getpid()

    def settings() -> list[object]:
        import resource

        return [
            os.sched_getaffinity(this), os.getpriority(os.PRIO_PROCESS, this),
            resource.getrlimit(resource.RLIMIT_NOFILE),
        ]  # fmt: skip

    before = settings()
    for name in ("slows_its_judge", "pins_its_judge", "limits_its_judge"):
        judged(tmp_path / name, name, WRONG[name])
        assert settings() == before


@LINUX
def test_a_kernels_own_settings_are_undone_and_told(tmp_path: Path) -> None:
    planted.write(tmp_path, "keeps_to_itself", NO_USE["keeps_to_itself"])
    rung = registry.find("cpu", "unary", "keeps_to_itself", [tmp_path])
    session = prepare(rung, PARAMS, [np.zeros(4096, np.float32)], 1)
    session.time_runs(2)
    client.rest()
    session.time_runs(1)
    assert session.witnesses()  # type: ignore[attr-defined]
    assert "priority" in session.facts["undone"]
    pid = session._child.pid  # type: ignore[attr-defined]
    assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0)
    session.close()


@LINUX
def test_more_threads_than_were_told_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = """
        if calls[0] == 1:  # so that it is not put on one core
            threading.Thread(target=threading.Event().wait, daemon=True).start()
        np.tanh(np.resize(x, 1 << 20))
        work(x, y)
    """
    planted.write(tmp_path, "computes", body)
    rung = registry.find("cpu", "unary", "computes", [tmp_path])
    session = prepare(rung, PARAMS, [np.zeros(4096, np.float32)], 2)
    session.time_runs(3)
    monkeypatch.setattr(stops, "ON_SEVERAL", 0.05)
    monkeypatch.setattr(stops, "ON_SEVERAL_NS", 0)
    with pytest.raises(KernelError, match="cores busy in its passes, and was given 2"):
        session.time_runs(3)
    session.close()


@LINUX
@pytest.mark.parametrize(("often", "found"), [("len(after) >= 0", True), ("len(after) == 3", False)])
def test_who_works_after_each_train_is_found(tmp_path: Path, often: str, found: bool) -> None:
    """And not who does so once, as where the machine is taken away for a while."""
    body = f"""
        if 'passes' not in held:
            import engine.isolated.slots as slots
            held['passes'], after = slots.passes, []

            def and_then(*given):
                held['passes'](*given)
                after.append(1)
                end = monotonic() + 0.002
                while {often} and monotonic() < end:
                    pass

            slots.passes = and_then
        np.tanh(x, out=y)
    """
    planted.write(tmp_path, "later", body)
    rung = registry.find("cpu", "unary", "later", [tmp_path])
    session = prepare(rung, PARAMS, [np.zeros(4096, np.float32)], 1)
    session.run()
    with pytest.raises(KernelError, match="after its timed passes") if found else contextlib.nullcontext():
        for _ in range(20):
            session.time_runs(4)
    session.close()


@LINUX
def test_nothing_is_taken_off_for_threads_that_are_only_there_to_be_counted(tmp_path: Path) -> None:
    body = """
        if 'passes' not in held:
            import engine.isolated.slots as slots
            held['passes'] = passes = slots.passes

            def started():
                held['end'] = threading.Event()
                for _ in range(2):
                    threading.Thread(target=held['end'].wait, daemon=True).start()

            def instead(calls, untimed, count, done):
                def first():
                    done()
                    held['end'].set()

                passes(calls, untimed, 0, first)
                sleep(0.01)
                for _ in range(count):
                    for call in calls:
                        call()
                    done()
                started()

            slots.passes = instead
            started()
        work(x, y)
    """
    planted.write(tmp_path, "counted", body)
    rung = registry.find("cpu", "unary", "counted", [tmp_path])
    session = prepare(rung, PARAMS, [np.zeros(4096, np.float32)], 2)
    session.run()
    taken = []
    for _ in range(6):
        session.time_runs(8)
        taken.append(session._trains._way._waiting[0])  # type: ignore[attr-defined]
    assert min(taken) == 1 < processes.threads(session._child.pid)  # type: ignore[attr-defined]
    session.close()


@LINUX
def test_nobody_cuts_shared_memory_off() -> None:
    block = Block(1 << 16)
    for length in (0, 1 << 20):
        with pytest.raises(PermissionError):
            os.ftruncate(block.fd, length)
    block.bytes[:] = 1
    block.close()


@LINUX
def test_no_kernel_writes_to_a_folder_that_was_named_after_a_process_lay_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(confine.KEPT, str(tmp_path / "another"))
    run = tmp_path / "run"
    run.mkdir()

    def session(name: str, body: str) -> RungSession:
        planted.write(tmp_path / name, name, body)
        rung = registry.find("cpu", "unary", name, [tmp_path / name])
        return prepare(rung, PARAMS, [np.zeros(4096, np.float32)], 1)

    held = [session(name, planted.HONEST) for name in ("first", "second")]
    ready = [child.pid for child in pool._spare]
    assert ready
    if confine.missing_restrictions(ready[-1]):
        pytest.skip("this system has no seccomp")
    idle = held[0]._child.pid  # type: ignore[attr-defined]
    held[0].close()
    confine.keep_unwritten(str(run))
    held.append(session("first", planted.HONEST))
    assert held[-1]._child.pid != idle, "the process in which it ran before could write there"  # type: ignore[attr-defined]
    held.append(session("writes", f"open({str(run / 'results.jsonl')!r}, 'a')"))
    with pytest.raises(KernelError, match="PermissionError"):
        held[-1].run()
    assert not any(run.iterdir())
    for one in held:
        one.close()


@LINUX
def test_the_inputs_of_a_pass_are_not_there_before_it(tmp_path: Path) -> None:
    """All memory that it shares with us is its arena: of one pass."""
    body = """
        maps = [line.split()[0].split('-') for line in open('/proc/self/maps') if 'memfd:kernelscope' in line]
        np.tanh(x, out=y)
        y[0] = sum(int(end, 16) - int(start, 16) for start, end in maps)
    """
    planted.write(tmp_path, "tells_its_memory", body)
    rung = registry.find("cpu", "unary", "tells_its_memory", [tmp_path])
    session = prepare(rung, PARAMS, [np.zeros(4096, np.float32)], 1)
    session.time_runs(64)
    found = max(witness.outputs["output"][1][0] for witness in session.witnesses())  # type: ignore[attr-defined]
    assert 0 < found <= session._layout.nbytes + 2 * mmap.PAGESIZE  # type: ignore[attr-defined]
    session.close()


def test_each_train_leaves_a_pass_that_can_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a warm-up's, one that is run again since it seemed too short, and those over new inputs."""
    planted.write(tmp_path, "honest", "np.tanh(x, out=y)")
    rung = registry.find("cpu", "unary", "honest", [tmp_path])
    session = prepare(rung, PARAMS, [np.linspace(-1, 1, 4096, dtype=np.float32)], 1)
    assert isinstance(session, Witnessed)
    assert isinstance(session, Renewable)
    off = iter([1e12] + 9 * [0.0])
    monkeypatch.setattr(empty, "waiting_ns", lambda *about: empty.Off(next(off), 0.0))
    session.time_runs(3)
    session.warm_runs(2)
    kept = session.witnesses()
    assert [witness.rough for witness in kept] == [False, False, True]
    first, again, warm = (witness.number for witness in kept)
    assert 1 <= first <= 3 < again <= 6 < warm <= 8
    assert session.stirring is not None
    for witness in kept:
        right = np.tanh(session.stirring.inputs_of(witness.number)["input 0"])
        np.testing.assert_array_equal(witness.outputs["output"][1], right)
    assert session.witnesses() == ()
    for alike in (SAME, NEW, NEW):  # the first is as a timed one
        session.renew(2, alike)
        session.time_renewed(2)
    assert len(session.witnesses()) == 1
    pairs = session.renewed()
    assert len(pairs) == 2
    for given, left in pairs:
        np.testing.assert_array_equal(left["output"], np.tanh(given["input 0"]))
    assert session.renewed() == ()
    session.close()


def test_without_stops_a_pass_begins_and_ends_with_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a system where nobody sees a process stop."""
    monkeypatch.setattr(processes, "STOPS_ITSELF", False)
    planted.write(tmp_path, "honest", planted.HONEST)
    rung = registry.find("cpu", "unary", "honest", [tmp_path])
    session = prepare(rung, PARAMS, [np.zeros(4096, np.float32)], 1)
    assert session.time_runs(3) / 3e9 > 0.95 * WORK_S
    assert len(session.witnesses()) == 1  # type: ignore[attr-defined]
    assert "runs on between its passes" in session.facts["not enforced"]
    planted.write(tmp_path / "raises", "raises", "raise ValueError('no')")
    rung = registry.find("cpu", "unary", "raises", [tmp_path / "raises"])
    other = prepare(rung, PARAMS, [np.zeros(4096, np.float32)], 1)
    with pytest.raises(KernelError, match="no"):
        other.time_runs(1)
    session.close()
    other.close()


INSIDE = """
        def inside(memory):
            at = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
            while True:
                for advice in (23, 4):  # all pages are to be there; and none
                    libc.madvise(at, ctypes.c_size_t(len(memory)), advice)
        if not held:
            held[0] = mmap.mmap(-1, 400 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            threading.Thread(target=inside, args=(held[0],), daemon=True).start()
        work(x, y)
"""


@LINUX
def test_what_the_system_does_for_a_kernel_is_over_when_the_next_one_begins(tmp_path: Path) -> None:
    """A thread in a long call of the system is not stopped before that returns."""
    planted.write(tmp_path, "inside", INSIDE)
    rung = registry.find("cpu", "unary", "inside", [tmp_path])
    session = prepare(rung, PARAMS, [np.zeros(4096, np.float32)], 1)
    for _ in range(4):
        session.run()
        pid = session._child.pid  # type: ignore[attr-defined]
        before = processes.worked_ns(pid)
        time.sleep(0.05)
        assert processes.worked_ns(pid) == before
    session.close()


@pytest.mark.parametrize("anew", [False, True], ids=["the bound one", "another one"])
def test_what_a_timed_pass_wrote_into_its_input_is_told_after_others_over(anew: bool, tmp_path: Path) -> None:
    now = tmp_path / "now"
    planted.write(tmp_path, "writes", f"work(x, y)\nif os.path.exists({str(now)!r}):\n    x[7] = 5")
    rung = registry.find("cpu", "unary", "writes", [tmp_path])
    session = prepare(rung, PARAMS, [np.zeros(4096, np.float32)], 1)
    session.time_runs(2)
    assert session.strays() == ()
    now.touch()
    session.time_runs(2)
    now.unlink()
    if anew:
        session.bind({"input 0": np.ones(4096, np.float32)})
    session.run()
    assert [(stray.buffer, stray.offset // 4) for stray in session.strays()] == [("input 0", 7)]
    session.close()


def test_what_a_kernel_raises_in_a_timed_pass_is_told(tmp_path: Path) -> None:
    planted.write(tmp_path, "raises", "if calls[0] > 3:\n    raise ValueError('no')\nwork(x, y)")
    rung = registry.find("cpu", "unary", "raises", [tmp_path])
    session = prepare(rung, PARAMS, [np.zeros(4096, np.float32)], 1)
    session.run()
    for _ in range(2):
        with pytest.raises(KernelError, match="ValueError: no"):
            session.time_runs(5)
    session.close()


def test_both_ways_of_timing_agree() -> None:
    """Of a pass of 1 ms; both_ways has the others."""
    start = time.perf_counter()
    while True:
        alone, given, _ = both_ways.compared(1500, 6)
        if 0.8 < min(given) / min(alone) < 1.25 or time.perf_counter() - start > 10:
            break
    assert 0.8 < min(given) / min(alone) < 1.25
