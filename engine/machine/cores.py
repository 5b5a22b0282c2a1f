"""The CPU core that other programs disturb least, for sessions of one thread.

On a virtual machine two of our cores may be one core of the processor, or somebody else may use the other
half of ours. A pass then takes 1.4 to 1.8 times as long, for tenths of a second or for many seconds, and
Linux does not count it as stolen time. A session that is timed on such a core would be called slower. So
before each round a short piece of work is timed on every usable core, and all sessions of one thread run that
round on the fastest core, in turns of milliseconds. The sessions that are compared have no influence on the
choice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection

# Work of about 25 µs, the least of so many tries on each core, the longer of so many times; and how long what
# was found is believed.
WORK, TRIES, TIMES, BELIEVED_S = 2000, 3, 2, 1.0


class Quiet:
    """The core that was chosen last."""

    def __init__(self) -> None:
        self._core = -1
        self._chosen_s = -BELIEVED_S

    def forget(self) -> None:
        """A round begins: the next call of `core` tries every core again."""
        self._chosen_s = -BELIEVED_S

    def core(self, cores: Collection[int]) -> int:
        """One of `cores`, on which the calling thread may run."""
        if self._core not in cores or time.monotonic() - self._chosen_s > BELIEVED_S:
            self._core = quietest(cores)
            self._chosen_s = time.monotonic()
        return self._core


QUIET = Quiet()


def quietest(cores: Collection[int]) -> int:
    """Where the work is done soonest. This thread may run on `cores`, and may again afterwards."""
    if len(cores) == 1:
        return min(cores)
    try:
        took = dict.fromkeys(sorted(cores), 0)
        for _ in range(TIMES):  # whoever is busy now and then is seen by one of them, probably
            for core, before in took.items():
                os.sched_setaffinity(0, {core})
                took[core] = max(before, _work_ns())
    finally:
        os.sched_setaffinity(0, cores)
    return min(took, key=took.__getitem__)


def _work_ns() -> int:
    least = 0
    for _ in range(TRIES):
        began = time.perf_counter_ns()
        sum(range(WORK))
        elapsed_ns = time.perf_counter_ns() - began
        least = min(least or elapsed_ns, elapsed_ns)
    return least
