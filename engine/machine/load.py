"""How busy other programs keep the machine, and how long our own threads wait for a core. Linux counts both:
/proc/stat for each core, in hundredths of a second; /proc/PID/task/TID/schedstat for each thread, in
nanoseconds (how long it ran, and how long it waited for a core).

Only the cores that we may use count. In a container, in a job of a batch system or under `taskset` these are
a few of many, and what runs on the others takes nothing from us. `stolen` is the time that the host of a
virtual machine takes away, also from /proc/stat.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_STAT = Path("/proc/stat")
# Of a core's line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
_BUSY, _STOLEN = (0, 1, 2, 5, 6), 7


@dataclass(frozen=True)
class Reading:
    """The counters at one moment. busy_s, stolen_s: seconds of our cores since the machine started; threads:
    for each of our threads, by number, the nanoseconds that it ran and waited since it began."""

    at_ns: int
    busy_s: float
    stolen_s: float
    threads: Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class Spent:
    """The difference of two readings in seconds. wall_s: elapsed time; the others are sums over our cores:
    what our threads ran, what they waited for a core, what other programs ran, what was stolen."""

    wall_s: float = 0.0
    ran_s: float = 0.0
    waited_s: float = 0.0
    others_s: float = 0.0
    stolen_s: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.wall_s + other.wall_s,
            self.ran_s + other.ran_s,
            self.waited_s + other.waited_s,
            self.others_s + other.others_s,
            self.stolen_s + other.stolen_s,
        )


def reading(pids: Iterable[int], cores: Collection[int]) -> Reading | None:
    """The counters of these cores, by number, and of the threads of these processes; None where the system
    has no such counters."""
    try:
        rate = os.sysconf("SC_CLK_TCK")
        ticks = [
            [int(word) for word in line.split()[1:]]
            for line in _STAT.read_bytes().split(b"\n")
            if line[:3] == b"cpu" and line[3:4].isdigit() and int(line[3:].split(None, 1)[0]) in cores
        ]
        busy = sum(of[place] for of in ticks for place in _BUSY) / rate
        stolen = sum(of[_STOLEN] for of in ticks) / rate
    except (OSError, ValueError, IndexError, AttributeError):
        return None
    threads: dict[int, tuple[int, int]] = {}
    for pid in pids:
        threads.update(_threads(pid))
    return Reading(time.perf_counter_ns(), busy, stolen, threads) if threads and ticks else None


def _threads(pid: int) -> dict[int, tuple[int, int]]:
    """The counters of the threads of a process, which may end meanwhile."""
    by_thread: dict[int, tuple[int, int]] = {}
    try:
        numbers = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return by_thread
    for number in numbers:
        try:
            with open(f"/proc/{pid}/task/{number}/schedstat", "rb") as file:
                ran, waited = file.read().split()[:2]
            by_thread[int(number)] = int(ran), int(waited)
        except (OSError, ValueError):
            continue
    return by_thread


def difference(before: Reading, after: Reading) -> Spent:
    """The difference of two readings. A thread that ended in between is not counted as ours: what it ran is
    in `others_s`."""
    ran = waited = 0
    for number, (now_ran, now_waited) in after.threads.items():
        then_ran, then_waited = before.threads.get(number, (0, 0))
        ran, waited = ran + max(0, now_ran - then_ran), waited + max(0, now_waited - then_waited)
    return Spent(
        wall_s=(after.at_ns - before.at_ns) / 1e9,
        ran_s=ran / 1e9,
        waited_s=waited / 1e9,
        others_s=after.busy_s - before.busy_s - ran / 1e9,
        stolen_s=after.stolen_s - before.stolen_s,
    )
