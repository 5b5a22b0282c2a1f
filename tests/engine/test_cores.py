"""What takes one thread runs where nobody else does, and says how often somebody did."""

import os

import pytest

from engine.backend import Options
from engine.backends import get
from engine.machine import cores
from engine.machine.cores import QUIET, quietest
from kernels.ends import LINUX
from tests.engine.backends.nets import small_net
from tests.engine.harness import random

pytestmark = pytest.mark.skipif(not LINUX, reason="there only a thread is told which core it is to run on")


@pytest.fixture
def busy(monkeypatch):
    """How long the work takes on each core, in order; the last goes on."""
    took = {}
    on = [0]
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, mask: on.__setitem__(0, min(mask)))

    def work_ns():
        left = took[on[0]]
        return left.pop(0) if len(left) > 1 else left[0]

    monkeypatch.setattr(cores, "_work_ns", work_ns)
    return took


def test_the_core_is_one_on_which_nobody_was_either_time(busy):
    busy.update({0: [16], 1: [10, 16], 2: [11], 3: [30, 10]})
    assert quietest({0, 1, 2, 3}) == (2, 11)


def test_the_only_core_is_not_tried(busy):
    assert quietest({5}) == (5, 0)


def test_a_core_is_shared_where_the_work_takes_longer_than_on_the_quietest(busy):
    quiet = cores.Quiet()
    busy.update({0: [20], 1: [10, 10, 11, 14, 10]})
    assert quiet.core({0}) == 0
    quiet.look()
    assert not quiet.was_shared(), "nothing is known of how soon it may be done"
    quiet.forget()
    assert quiet.core({0, 1}) == 1
    busy[0] = busy[1]
    for shared in (False, True, False):
        quiet.look()
        assert quiet.was_shared() == shared
    assert not quiet.was_shared()


def test_a_train_on_a_core_that_was_shared_is_run_again(monkeypatch):
    session = get("ort-cpu").prepare(small_net(), 2, options=Options(threads=1))
    session.bind({"x": random((2, 3, 12, 12))})
    found = [True, True, False]
    forgot = []
    monkeypatch.setattr(QUIET, "look", lambda: setattr(QUIET, "_shared", bool(found and found.pop(0))))
    monkeypatch.setattr(QUIET, "forget", lambda: forgot.append(1))
    trains = []
    plain = session._child.train
    monkeypatch.setattr(session._child, "train", lambda *a: trains.append(a) or plain(*a))
    try:
        assert session.time_runs(1) > 0
        assert len(trains) == 2
        assert len(forgot) == 1
        assert session.facts["core"] == "shared with other programs in 1 of 2 trains, run again"
        found += [True] * 1000
        session.time_runs(1)
        assert len(trains) == 2 + 6, "where somebody always is, that is how it is timed"
    finally:
        session.close()
