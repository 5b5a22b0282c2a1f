"""The core that others leave alone most, for what takes one thread.

Under a virtual machine two cores of ours may be one core of the processor, or its other half is somebody
else's: a pass then takes 1.4 to 1.8 times as long, for tenths of a second or for many seconds, and nothing
here counts it as stolen. Who is timed on such a core would be called slower. So before each round the same
short work is done on every core that we may use, and all that take one thread run in that round on the core
where it was done soonest, in turns of milliseconds. Nothing that is compared has a say in it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection

# Work of about 25 µs, the least of so many tries on each core, the longer of so many times; and how long what
# was found is believed.
WORK, TRIES, TIMES, BELIEVED_S = 2000, 3, 2, 1.0


class Quiet:
    """The choice, as it was last made."""

    def __init__(self) -> None:
        self._core = -1
        self._chosen_s = -BELIEVED_S

    def forget(self) -> None:
        """A round begins: the next who asks has every core tried."""
        self._chosen_s = -BELIEVED_S

    def core(self, cores: Collection[int]) -> int:
        """One of `cores`, which this thread may run on."""
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
