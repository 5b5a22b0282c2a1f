"""The core that others leave alone most, for what takes one thread.

Under a virtual machine two cores of ours may be one core of the processor, or its other half is somebody
else's: a pass then takes 1.4 to 1.8 times as long, for tenths of a second or for many seconds, and nothing
here counts it as stolen. Who is timed on such a core would be called slower. So before each round the same
short work is done on every core that we may use, and all that take one thread run in that round on the core
where it was done soonest. It is done there again before and after each train of passes: where it took longer,
somebody was there, and the train is run again elsewhere. Nothing that is compared has a say in either.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection

# Work of about 25 µs, the least of so many tries on each core, the longer of so many times; and how long what
# was found is believed. A core is shared where the work takes so many times as long as where it was done
# soonest: what shares a core's units takes 1.3 times as long and more, and two cores' clocks differ less.
WORK, TRIES, TIMES, BELIEVED_S, SHARED = 2000, 3, 2, 1.0, 1.12


class Quiet:
    """The choice, as it was last made."""

    def __init__(self) -> None:
        self._core = -1
        self._chosen_s = -BELIEVED_S
        self._soonest_ns = 0
        self._shared = False

    def forget(self) -> None:
        """A round begins: the next who asks has every core tried."""
        self._chosen_s = -BELIEVED_S

    def core(self, cores: Collection[int]) -> int:
        """One of `cores`, which this thread may run on."""
        if self._core not in cores or time.monotonic() - self._chosen_s > BELIEVED_S:
            self._core, self._soonest_ns = quietest(cores)
            self._chosen_s = time.monotonic()
        return self._core

    def look(self) -> None:
        """This thread is on the core, and what is timed there does not run: is anybody else there?"""
        self._shared |= _work_ns() > SHARED * self._soonest_ns > 0

    def was_shared(self) -> bool:
        """Whether somebody was found there since this was last asked."""
        found, self._shared = self._shared, False
        return found


QUIET = Quiet()


def quietest(cores: Collection[int]) -> tuple[int, int]:
    """Where the work is done soonest, and its nanoseconds there (0: not tried, as there is no other). This
    thread may run on `cores`, and may again afterwards."""
    if len(cores) == 1:
        return min(cores), 0
    try:
        took = dict.fromkeys(sorted(cores), 0)
        for _ in range(TIMES):  # whoever is busy now and then is seen by one of them, probably
            for core, before in took.items():
                os.sched_setaffinity(0, {core})
                took[core] = max(before, _work_ns())
    finally:
        os.sched_setaffinity(0, cores)
    soonest = min(took, key=took.__getitem__)
    return soonest, took[soonest]


def _work_ns() -> int:
    least = 0
    for _ in range(TRIES):
        began = time.perf_counter_ns()
        sum(range(WORK))
        taken = time.perf_counter_ns() - began
        least = min(least or taken, taken)
    return least
