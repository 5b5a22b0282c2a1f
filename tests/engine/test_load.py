"""Who uses the cores: our own threads are told from other programs, of this machine as it is."""

import os
import subprocess
import sys
import time

import pytest

from engine.machine import load
from engine.machine.host import usable_cores

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems count otherwise")


def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.mark.sampled(4, "long")
def test_what_runs_here_is_ours_and_what_runs_elsewhere_is_others():
    other = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
    try:
        before = load.reading([os.getpid()], usable_cores())
        spin(0.4)
        after = load.reading([os.getpid()], usable_cores())
        told = load.reading([os.getpid(), other.pid], usable_cores())
    finally:
        other.kill()
        other.wait()
    assert before is not None
    assert after is not None
    assert told is not None
    spent = load.difference(before, after)
    assert 0.35 < spent.ran_s <= spent.wall_s * os.cpu_count()
    assert spent.wall_s >= 0.39
    assert spent.others_s > 0.05, "it had at least the half of a core, whatever else there was"
    assert len(told.threads) == len(after.threads) + 1
    assert (spent + spent).wall_s == 2 * spent.wall_s


def test_a_process_that_is_gone_has_no_threads_and_is_no_error():
    gone = subprocess.Popen([sys.executable, "-S", "-c", ""])
    gone.wait()
    assert load.reading([gone.pid], usable_cores()) is None
    both = load.reading([gone.pid, os.getpid()], usable_cores())
    assert both is not None
    assert both.threads


@pytest.mark.skipif(len(usable_cores()) < 2, reason="takes two cores")
def test_what_runs_on_cores_that_we_may_not_use_takes_nothing_from_us():
    theirs, *_, ours = sorted(usable_cores())
    other = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
    try:
        os.sched_setaffinity(other.pid, {theirs})
        before = [load.reading([os.getpid()], {core}) for core in (theirs, ours)]
        time.sleep(0.5)
        after = [load.reading([os.getpid()], {core}) for core in (theirs, ours)]
    finally:
        other.kill()
        other.wait()
    on_theirs, on_ours = (load.difference(*of) for of in zip(before, after, strict=True))
    assert on_theirs.others_s > 0.1
    for spent in (on_theirs, on_ours):
        assert spent.others_s <= spent.wall_s + 0.05, "no more than one core has"
    assert load.reading([os.getpid()], set()) is None
