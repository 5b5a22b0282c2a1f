"""Before something is measured: who else keeps the cores busy, whether this program measures elsewhere."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from bench.run import beforehand, nvml
from bench.run.beforehand import (
    Announced,
    Looked,
    busy_words,
    looked_at,
    other_instances,
    slowed,
    used_by_others,
)
from kernels.cache import cache_dir

pytestmark = pytest.mark.usefixtures("own_cache")

ELSEWHERE = """
import sys
from bench.run.beforehand import Announced
Announced("ladder").enter()
print("in", flush=True)
sys.stdin.read()
"""
SET_CHILD_SUBREAPER, GET_CHILD_SUBREAPER = 36, 37  # of prctl
BURN = "import time; end = time.monotonic() + 20\nwhile time.monotonic() < end: pass"


def test_what_others_use_is_said_in_cores_and_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert "(this program may use 2)" in busy_words({"burn": 1.8, "other": 0.1}, 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert busy_words({}, 2) == busy_words({"burn": 0.3, "other": 0.1}, 2) == ""
    one = busy_words({"burn": 1.8, "other": 0.1}, 2)
    assert one.startswith("Another program, burn, uses 180 % of one core (this machine has 2)")
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert busy_words({"a": 0.4, "b": 0.4, "c": 0.4}, 8).startswith(
        "Other programs use 120 % of one core (this machine has 8)"
    )


@pytest.fixture
def stranger() -> Iterator[int]:
    """A busy process that is nobody's child here."""
    script = f"{sys.executable} -c '{BURN}' > /dev/null & echo $!"
    # An earlier test may have forked kernel processes: since then what is left behind is this process's own.
    kept = ctypes.c_int(0)
    prctl = getattr(ctypes.CDLL(None), "prctl", lambda *_: None)
    prctl(GET_CHILD_SUBREAPER, ctypes.byref(kept), 0, 0, 0)
    prctl(SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    done = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    prctl(SET_CHILD_SUBREAPER, kept.value, 0, 0, 0)
    pid = int(done.stdout)
    yield pid
    os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a shell that leaves a process behind")
def test_a_busy_stranger_is_noticed_and_our_own_processes_are_not(
    stranger: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = subprocess.Popen([sys.executable, "-c", BURN])
    try:
        assert own.pid in beforehand._own()
        assert stranger not in beforehand._own()
        assert "of one core" in busy_words(used_by_others(0.6), 2)
        assert beforehand.look(0.6).slowed > 1.2
        if hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > 1:
            # Bound to other cores than ours it takes nothing from us.
            before = os.sched_getaffinity(0)
            first, *others = sorted(before)
            os.sched_setaffinity(stranger, {first})
            os.sched_setaffinity(0, set(others))
            try:
                assert (stranger, psutil.Process(stranger).create_time()) not in beforehand._spent()
            finally:
                os.sched_setaffinity(0, before)
                os.sched_setaffinity(stranger, before)
        # As if this machine had nobody else: what is ours is not counted.
        spent = beforehand._spent
        monkeypatch.setattr(
            beforehand,
            "_spent",
            lambda: {key: value for key, value in spent().items() if key[0] in (own.pid, os.getpid())},
        )
        assert busy_words(used_by_others(0.3), 2) == ""
        assert beforehand.look(0.3).slowed == 1.0
    finally:
        own.kill()
        own.wait()


@pytest.mark.parametrize(("percent", "told"), [(45, "the GPU busy 45 % of the time"), (3, "")])
def test_a_gpu_that_others_use_is_noticed(percent: int, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Seen:
        busy = percent / 100

    monkeypatch.setattr(nvml.Gpu, "first", lambda: Seen())
    assert told in beforehand.gpu_in_use()
    assert bool(told) == bool(beforehand.gpu_in_use())
    fake = types.SimpleNamespace(
        NVMLError=OSError,
        nvmlDeviceGetUtilizationRates=lambda handle: types.SimpleNamespace(gpu=percent),
    )
    gpu = object.__new__(nvml.Gpu)
    gpu._nvml, gpu._handle = fake, None
    assert gpu.busy == percent / 100
    monkeypatch.setattr(nvml.Gpu, "first", lambda: None)
    assert beforehand.gpu_in_use() == ""


def test_another_instance_is_noticed_as_long_as_it_measures_and_lives() -> None:
    assert other_instances() == ""
    with subprocess.Popen(
        [sys.executable, "-c", ELSEWHERE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"in\n"
        assert f"(ladder in process {other.pid})" in other_instances()
        other.kill()
    assert other_instances() == ""
    assert not list((cache_dir() / "measuring").iterdir()), "what a kill has left is cleared"


def test_a_number_that_somebody_else_has_now_is_nobody_s() -> None:
    entry = beforehand._Entry(os.getppid(), 1.0, "compare")
    path = cache_dir() / "measuring" / f"{entry.pid}.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(msgspec.json.encode(entry))
    (path.parent / "7.json").write_bytes(b"{")
    assert other_instances() == ""
    assert not path.exists()


def test_one_is_not_another_to_itself_and_leaves_nothing() -> None:
    mine = Announced("compare")
    mine.enter()
    assert other_instances() == ""
    assert list((cache_dir() / "measuring").iterdir())
    mine.leave()
    assert not list((cache_dir() / "measuring").iterdir())
    mine.enter()  # a thread that comes late
    assert not list((cache_dir() / "measuring").iterdir())


def test_a_cache_that_cannot_be_written_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "file"))
    mine = Announced("compare")
    mine.enter()
    assert other_instances() == ""
    mine.leave()


def test_what_is_measured_headless_is_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Looked] = []
    seen = Looked(("Another program",), 2.0)
    monkeypatch.setattr(beforehand, "look", lambda: seen)
    with looked_at("compare", told.append):
        assert (cache_dir() / "measuring" / f"{os.getpid()}.json").exists()
    assert told == [seen]
    assert not (cache_dir() / "measuring" / f"{os.getpid()}.json").exists()


@pytest.mark.parametrize(
    ("used", "waiting", "cores", "times"),
    [
        (0.1, 6.0, 2, 1.0),  # others have ended, of which the last minute still tells
        (1.0, 0.2, 2, 1.5),  # they have just begun
        (2.0, 6.0, 2, 4.0),  # more of them than there are cores
        (2.0, 2.0, 16, 1.125),
    ],
)
def test_how_much_longer_things_take_beside_others(
    used: float, waiting: float, cores: int, times: float
) -> None:
    assert slowed(used, waiting, cores) == times
