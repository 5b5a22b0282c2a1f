"""What takes one thread runs where nobody else does, and tells of its passes part by part."""

import os

import pytest

from engine.backend import Options
from engine.backends import get
from engine.isolated import trains
from engine.machine import cores
from engine.machine.cores import quietest
from kernels.processes import LINUX
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
    assert quietest({0, 1, 2, 3}) == 2


def test_the_only_core_is_not_tried(busy):
    assert quietest({5}) == 5


@pytest.mark.parametrize(("threads", "parts"), [(1, [2] * 4), (2, [7])])
def test_of_one_thread_each_part_of_what_was_timed_is_told(threads, parts, monkeypatch):
    session = get("ort-cpu").prepare(small_net(), 2, options=Options(threads=threads))
    session.bind({"x": random((2, 3, 12, 12))})
    monkeypatch.setattr(trains, "PARTS", 4)
    try:
        assert session.one_thread == (threads == 1)
        whole = session.time_runs(7)
        assert len(session.parts_ns) == len(parts)
        passes = [*parts[:-1], 7 - sum(parts[:-1])]
        told = sum(ns * count for ns, count in zip(session.parts_ns, passes, strict=True))
        assert whole == pytest.approx(told, abs=1)
        assert min(session.parts_ns) > 0
    finally:
        session.close()
