"""On which cores, with which priority and within which limits processes run: what a kernel changed of that is
found, undone and told.

Linux has these for each thread; elsewhere nothing is looked at.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from engine.machine.cores import QUIET
from kernels import confine
from kernels.processes import LINUX


class Settings(NamedTuple):
    """Of a thread: the cores that it may run on, its nice value, scheduling class and real-time priority."""

    cores: frozenset[int]
    niceness: int
    policy: int
    urgency: int


Threads = dict[int, Settings]
Limits = tuple[tuple[int, int], ...]  # soft and hard, by number of the limit


def of_threads(pid: int) -> Threads:
    """Of each thread of a process; {} where it is gone."""
    by_thread: Threads = {}
    if not LINUX:
        return by_thread
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/task"):
            tid = int(name)
            with contextlib.suppress(OSError):
                by_thread[tid] = Settings(
                    frozenset(os.sched_getaffinity(tid)),
                    os.getpriority(os.PRIO_PROCESS, tid),
                    os.sched_getscheduler(tid),
                    os.sched_getparam(tid).sched_priority,
                )
    return by_thread


def limits(pid: int) -> Limits:
    """All limits of a process; () where it is gone."""
    if LINUX:
        import resource

        with contextlib.suppress(OSError):
            all_limits = [resource.prlimit(pid, number) for number in range(_COUNT)]
            # This program limits its own memory while it reads a file (bench.run.confined).
            data = resource.RLIMIT_DATA
            all_limits[data] = all_limits[data][1], all_limits[data][1]
            return tuple(all_limits)
    return ()


_COUNT = 16  # RLIM_NLIMITS


class _Way(NamedTuple):
    """What may differ of a thread: its words, and how it is undone."""

    words: str
    differs: Callable[[Settings, Settings], bool]
    undo: Callable[[int, Settings], None]


_WAYS = (
    _Way(
        "the cores",
        lambda was, now: was.cores != now.cores,
        lambda tid, was: os.sched_setaffinity(tid, was.cores),
    ),
    _Way(
        "the scheduling class",
        lambda was, now: (was.policy, was.urgency) != (now.policy, now.urgency),
        lambda tid, was: os.sched_setscheduler(tid, was.policy, os.sched_param(was.urgency)),
    ),
    _Way(
        "the priority",
        lambda was, now: was.niceness != now.niceness,
        lambda tid, was: os.setpriority(os.PRIO_PROCESS, tid, was.niceness),
    ),
)


class Watched:
    """Processes as they were before a kernel ran. others: number and words of those that it is to leave
    alone; own: that of the kernel, whose new threads are as its first was."""

    def __init__(self, others: Sequence[tuple[int, str]], own: int) -> None:
        self._others = [(pid, words, of_threads(pid), limits(pid)) for pid, words in others]
        # One that was started while a kernel had changed its judge is as that was then.
        ours = of_threads(os.getpid()).get(os.getpid())
        if ours is not None:
            list(_undone({own: ours}, of_threads(own)))
        self._own, self._own_threads = own, of_threads(own)
        self._ours = limits(os.getpid())

    def put_back(self) -> bool:
        """The limits of this process are as they were, so that it can go on. Whether they were others."""
        if (now := _since(os.getpid(), self._ours)) == self._ours:
            return False
        _restored(os.getpid(), self._ours, now)
        return True

    def changed(self) -> tuple[list[str], list[str]]:
        """What was changed since of the others, and of its own; all of it as it was, where it may be."""
        sentences = []
        for pid, words, threads, limits_before in self._others:
            sentences += [f"{way} of {words}" for way in dict.fromkeys(_undone(threads, of_threads(pid)))]
            if limits_before and (now := _since(pid, limits_before)) and now != limits_before:
                which = _named(limits_before, now)
                sentences.append(f"the limits ({which}) of {words}{_restored(pid, limits_before, now)}")
        threads = of_threads(self._own)
        first = self._own_threads.get(self._own)
        meant = {tid: self._own_threads.get(tid, first) for tid in threads} if first else {}
        own = _undone({tid: was for tid, was in meant.items() if was}, threads)
        return sentences, list(dict.fromkeys(own))


def _undone(was: Mapping[int, Settings], now: Mapping[int, Settings]) -> Iterator[str]:
    for tid, before in was.items():
        if tid not in now or now[tid] == before:
            continue
        for way in _WAYS:
            if way.differs(before, now[tid]):
                try:
                    way.undo(tid, before)
                except OSError:
                    yield f"{way.words} (not to be undone)"
                else:
                    yield way.words


def _since(pid: int, was: Limits) -> Limits:
    """The limits of a process as they are now, with that of its stack as it was if it was raised: NVIDIA's
    compiler raises it in the process that loads it, a kernel that meddles has nothing of it."""
    now = limits(pid)
    if was and now:
        import resource

        stack, most = resource.RLIMIT_STACK, resource.RLIM_INFINITY
        (soft, hard), (new, new_hard) = was[stack], now[stack]
        if hard == new_hard and (new == most or (soft != most and new >= soft)):
            return (*now[:stack], was[stack], *now[stack + 1 :])
    return now


def _named(was: Limits, now: Limits) -> str:
    """Which limits differ, as resource names them: "NOFILE"."""
    import resource

    names = {getattr(resource, name): name for name in dir(resource) if name.startswith("RLIMIT_")}
    differ = [number for number, pair in enumerate(zip(was, now, strict=True)) if pair[0] != pair[1]]
    return ", ".join(names.get(number, str(number)).removeprefix("RLIMIT_") for number in differ)


def _restored(pid: int, was: Limits, now: Limits) -> str:
    import resource

    failed = ""
    for number, (before, after) in enumerate(zip(was, now, strict=True)):
        if before != after:
            try:
                resource.prlimit(pid, number, before)
            except (OSError, ValueError):
                failed = " (not to be undone)"
    return failed


@contextlib.contextmanager
def on_one_core(pid: int) -> Iterator[None]:
    """Meanwhile this thread, and all of process `pid`, run on the one core that is left alone most
    (engine.machine.cores). Two that never run at the same time then need no other
    core to be woken, and find the same caches."""
    if not LINUX:
        yield
        return
    cores = os.sched_getaffinity(0)
    here = QUIET.core(cores)
    try:
        os.sched_setaffinity(0, {here})
        _all_on(pid, {here})
        yield
    finally:
        os.sched_setaffinity(0, cores)
        _all_on(pid, cores)


def _all_on(pid: int, cores: set[int]) -> None:
    """Every thread of a process; one that a kernel has started itself, too."""
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                try:
                    os.sched_setaffinity(int(name), cores)
                except PermissionError:
                    with confine.for_stranger():
                        os.sched_setaffinity(int(name), cores)
