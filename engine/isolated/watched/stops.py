"""Passes of a process that stops itself after each: it begins one as we have it go on, and has ended it when
all of its threads have stopped, which the system tells who started it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator

from engine.isolated.watched.settings import on_one_core
from kernels import processes

STRAY_NS = 20_000  # of a processor's time a stop: a thread that was seen to stop is about to
# What a kernel keeps busy in its passes at most, of the cores that it was given, and beyond that. One that
# has all its threads on one core cannot keep more than that busy; several threads may wait for each other.
ON_ONE, ON_ONE_NS = 1.05, 100_000
ON_SEVERAL, ON_SEVERAL_NS = 1.25, 1_000_000


def timed(
    pid: int,
    fd: int,
    silent: Callable[[], None],
    count: int,
    before: Callable[[int], None],
    after: Callable[[int], None],
    one_core: bool,
    cores: int = 1,
) -> tuple[list[int], str]:
    """Nanoseconds of each pass of child `pid`; and what it did that it was not to, in words: processors
    worked for it while inputs were made, or more of them in its passes than it was given (`cores`).
    fd: our end of the way to it; silent: raises what it has said, where it was to run a pass and stop.
    before, after, one_core: see engine.isolated.client.Child.passes. Raises ChildProcessError where it has
    ended."""
    clock, kill, wait, worked, go = (
        time.perf_counter_ns, os.kill, processes.until_stopped, processes.worked_ns, signal.SIGCONT,
    )  # fmt: skip
    times: list[int] = []
    stray = busy = 0
    went_on = False
    with SENTRY.over(fd, pid), on_one_core(pid) if one_core else contextlib.nullcontext():
        wait(pid)
        silent()
        for k in range(count):
            stray -= worked(pid)
            before(k)
            begun = worked(pid)
            stray += begun
            went_on = went_on or processes.went_on(pid)
            started = clock()
            kill(pid, go)
            wait(pid)
            times.append(clock() - started)
            silent()
            busy += worked(pid) - begun
            after(k)
    if went_on:
        return times, "had itself go on while it was to be stopped"
    if stray > STRAY_NS * (count + 50):
        return times, f"worked for {stray / 1e6:.1f} ms while it was to be stopped"
    most, beyond_ns = (ON_ONE, ON_ONE_NS) if one_core else (ON_SEVERAL * cores, ON_SEVERAL_NS)
    if busy > most * sum(times) + beyond_ns:
        core_words = "one" if one_core else f"{cores}"
        return times, f"kept {busy / sum(times):.1f} cores busy in its passes, and was given {core_words}"
    return times, ""


# --------------------------------------------------------------------------------------------------- sentry

# Who waits for a child to stop does not see that it has said something instead, or closed the way to us. So
# somebody else looks, and stops it then.


AGAIN_S = 0.001


class Sentry:
    """A thread that stops children which say something while they are to run and stop. Linux."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._poll: select.epoll | None = None
        self._owner = 0
        self._pids: dict[int, int] = {}

    @contextlib.contextmanager
    def over(self, fd: int, pid: int) -> Iterator[None]:
        """Meanwhile child `pid`, whose end of ours is `fd`, is stopped as soon as that can be read from."""
        poll = self._started()
        self._pids[fd] = pid
        poll.register(fd, select.EPOLLIN | select.EPOLLONESHOT)
        try:
            yield
        finally:
            with contextlib.suppress(OSError, ValueError):
                poll.unregister(fd)
            self._pids.pop(fd, None)

    def _started(self) -> select.epoll:
        with self._lock:
            if self._poll is None or self._owner != os.getpid():
                self._poll, self._owner, self._pids = select.epoll(), os.getpid(), {}
                threading.Thread(target=self._serve, args=(self._poll,), name="sentry", daemon=True).start()
            return self._poll

    def _serve(self, poll: select.epoll) -> None:
        while True:
            for fd, _ in poll.poll():
                # Until it is seen to have stopped: somebody else may have it go on.
                while (pid := self._pids.get(fd)) is not None:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGSTOP)
                    time.sleep(AGAIN_S)


SENTRY = Sentry()
