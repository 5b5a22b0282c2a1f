"""Processes that a kernel has started: it could have its work done there while it is stopped itself.

Whoever descends from a child of ours and loses its parent becomes ours (kernels.processes.keep_orphans), and
a process that is made beside its maker (CLONE_PARENT) is ours as well. So what a kernel starts is below its
own process, or directly below this one, whatever it does. Those directly below this one are listed before
the kernel's process is woken and after it was stopped: what is new, and was not started by this program
itself, the kernel has started.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable

from kernels import processes

AGAIN_S = 0.02  # after so long a process that somebody here has just started is known


class Beside:
    """The processes directly below this one, for one child of ours. known: those that this program has."""

    def __init__(self, known: Callable[[], set[int]]) -> None:
        self._known = known
        self._threads = {
            os.getpid(),
            threading.get_native_id(),
        }  # the first has orphans, this one what is made beside
        self._before: set[int] = set()

    def begin(self) -> None:
        """The child is about to be woken."""
        self._before = self._now()

    def strangers(self) -> set[int]:
        """It is stopped: what it has started beside itself."""
        if not self._now() - self._before:
            return set()
        unknown = self._unknown()
        if unknown:
            time.sleep(AGAIN_S)
            unknown &= self._unknown()
        return unknown

    def _unknown(self) -> set[int]:
        return self._now() - self._before - processes.OURS - self._known()

    def _now(self) -> set[int]:
        return processes.children(os.getpid(), self._threads)


def end(strangers: set[int]) -> None:
    """End these, and all that they have started."""
    for pid in strangers:
        started = processes.kill(pid, group=False)
        reap({pid} | started)


def reap(ended: Iterable[int]) -> None:
    """Nothing is left of these that were ours, and that nobody else waits for."""
    for pid in ended:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
