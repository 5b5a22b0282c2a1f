"""Passes of a process that stops itself after each: it begins one as we have it go on, and has ended it when
all of its threads have stopped, which the system tells who started it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable

from engine.apart.watched.sentry import SENTRY
from engine.apart.watched.settings import on_one_core
from kernels import ends

STRAY_NS = 20_000  # of a processor's time a stop: a thread that was seen to stop is about to
CORES, BUSY_NS = 1.25, 1_000_000  # that one of one thread keeps busy, at most


def timed(
    pid: int,
    fd: int,
    silent: Callable[[], None],
    count: int,
    before: Callable[[int], None],
    after: Callable[[int], None],
    one_core: bool,
) -> tuple[list[int], str]:
    """Nanoseconds of each pass of child `pid`; and what it did that it was not to, in words: processors
    worked for it while inputs were made, or more of them in its passes than it was given.
    fd: our end of the way to it; silent: raises what it has said, where it was to run a pass and stop.
    before, after, one_core: see engine.apart.client.Child.passes. Raises ChildProcessError where it has
    ended."""
    clock, kill, wait, worked, go = (
        time.perf_counter_ns, os.kill, ends.until_stopped, ends.worked_ns, signal.SIGCONT,
    )  # fmt: skip
    taken: list[int] = []
    stray = busy = 0
    with SENTRY.over(fd, pid), on_one_core(pid) if one_core else contextlib.nullcontext():
        wait(pid)
        silent()
        for k in range(count):
            stray -= worked(pid)
            before(k)
            begun = worked(pid)
            stray += begun
            started = clock()
            kill(pid, go)
            wait(pid)
            taken.append(clock() - started)
            silent()
            busy += worked(pid) - begun
            after(k)
    if stray > STRAY_NS * (count + 50):
        return taken, f"worked for {stray / 1e6:.1f} ms while it was to be stopped"
    if one_core and busy > CORES * sum(taken) + BUSY_NS:
        return taken, f"kept {busy / sum(taken):.1f} cores busy in its passes, and was given one"
    return taken, ""
