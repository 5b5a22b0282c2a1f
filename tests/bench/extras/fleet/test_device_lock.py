"""One at a time has a device, and nobody waits for ever."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bench.extras.fleet.device_lock import DeviceLock, path_of

pytest.importorskip("fcntl")


def test_what_is_timed_has_the_device_alone_and_all_get_their_turn(tmp_path: Path) -> None:
    """Four that check and time: where each held a share while it waits, they would wait for ever."""
    inside, worst, turns = [0], [0], []

    def take(number: int) -> None:
        lock = DeviceLock(tmp_path / "gpu.lock")
        for _ in range(3):
            lock.share()
            with lock.alone():
                inside[0] += 1
                worst[0] = max(worst[0], inside[0])
                time.sleep(0.005)
                inside[0] -= 1
            turns.append(number)
        lock.close()

    threads = [threading.Thread(target=take, args=(n,), daemon=True) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(turns) == 12
    assert worst == [1]


def test_who_shares_a_device_is_waited_for_and_whoever_comes_then_waits_behind(tmp_path: Path) -> None:
    waiting = [threading.Event() for _ in range(2)]
    first = DeviceLock(tmp_path / "cpu.lock")
    second, third = (DeviceLock(tmp_path / "cpu.lock", waits.set) for waits in waiting)
    came: list[str] = []

    def alone() -> None:
        with second.alone():
            came.append("alone")

    def share() -> None:
        with third.shared():
            came.append("shared")

    with first.shared():
        waits = threading.Thread(target=alone, daemon=True)
        waits.start()
        assert waiting[0].wait(60)
        later = threading.Thread(target=share, daemon=True)
        later.start()
        assert waiting[1].wait(60)
        assert came == []
    for thread in (waits, later):
        thread.join(60)
    assert came == ["alone", "shared"]


def test_who_shares_a_device_gives_way_to_whoever_waits_to_have_it_alone(tmp_path: Path) -> None:
    waiting = threading.Event()
    checks, times = DeviceLock(tmp_path / "cpu.lock"), DeviceLock(tmp_path / "cpu.lock", waiting.set)
    came: list[str] = []

    def alone() -> None:
        with times.alone():
            came.append("timed")

    assert not checks.give_way()  # it has nothing that it could give
    checks.share()
    assert not checks.give_way()  # and here nobody waits
    waits = threading.Thread(target=alone, daemon=True)
    waits.start()
    assert waiting.wait(60)
    assert came == []
    assert checks.give_way()
    came.append("checked")  # it shares the device again
    assert came == ["timed", "checked"]
    waits.join(60)


def test_a_process_that_is_killed_gives_the_device_back(tmp_path: Path) -> None:
    path = tmp_path / "gpu.lock"
    code = (
        "import sys, time; from pathlib import Path; from bench.extras.fleet.device_lock import DeviceLock\n"
        "with DeviceLock(Path(sys.argv[1])).alone(): print('has it', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "has it\n"
    with DeviceLock(path, holder.kill).alone():  # once it is waited for
        assert holder.wait() == -signal.SIGKILL
    holder.stdout.close()


def test_a_device_of_any_name_has_a_file() -> None:
    assert path_of("GPU-1/..x").name == "GPU-1_..x.lock"
    assert path_of("0") != path_of("1")
