"""What a worker's process used: real, user and system time, memory, page faults, and the GPU's memory; and
how long one of its threads had a core."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from time import perf_counter_ns

import psutil

from bench.results.profile_records import ProcessUse, of_rusage
from bench.run import nvml

PERIOD_S = 0.05
FINE_NS = 10_000  # a step of a clock that tells of a pass
LOOK_NS, MOST_NS = 1_000_000, 200_000_000  # how long one is looked for; at most, where the thread has to wait
FEWEST_STEPS = 3
FEWEST_LOOKS = 1000  # however long the thread waits for a core meanwhile: it may wait at every one of a few


def process_use(started_ns: int, gpu_peak_nbytes: int | None = None) -> ProcessUse:
    """Of this process since it was started (perf_counter_ns), as its last act."""
    real_s = (perf_counter_ns() - started_ns) / 1e9
    try:
        import resource
    except ImportError:  # Windows
        process = psutil.Process()
        times, memory = process.cpu_times(), process.memory_info()
        return ProcessUse(
            real_s=real_s,
            user_s=times.user,
            system_s=times.system,
            max_rss_nbytes=getattr(memory, "peak_wset", memory.rss),
            minor_faults=getattr(memory, "num_page_faults", 0),
            gpu_peak_nbytes=gpu_peak_nbytes,
        )
    used = resource.getrusage(resource.RUSAGE_SELF)
    return ProcessUse(
        real_s=real_s,
        **of_rusage(used),
        gpu_peak_nbytes=gpu_peak_nbytes,
    )


def thread_clock() -> Callable[[], int] | None:
    """Nanoseconds for which the calling thread has had a core; None where the system's clock of that takes
    steps too large for a pass."""
    clock = getattr(time, "thread_time_ns", None)
    if clock is None:
        return None
    started, last, steps = perf_counter_ns(), clock(), 0
    for look in itertools.count():
        now = clock()
        if 0 < now - last <= FINE_NS:
            break
        steps += now > last
        last = now
        taken = perf_counter_ns() - started
        if look >= FEWEST_LOOKS and taken >= LOOK_NS and (steps >= FEWEST_STEPS or taken >= MOST_NS):
            return None
    return clock


class GpuPeak:
    """How far the GPU's used memory rose above what it was when `watch` was called, looked at 20 times a
    second. It is the device's: what other processes take in the meantime is in it."""

    def __init__(self) -> None:
        self._gpu: nvml.Gpu | None = None
        self._before = self._most = 0
        self._end = threading.Event()

    def watch(self) -> None:
        """From now on."""
        self._gpu = nvml.Gpu.first()
        self._before = self._most = self._used()
        if self._before:
            threading.Thread(target=self._look, daemon=True, name="GPU memory").start()

    @property
    def peak_nbytes(self) -> int | None:
        """None where NVML tells nothing."""
        if not self._before:
            return None
        self._most = max(self._most, self._used())
        return self._most - self._before

    def close(self) -> None:
        self._end.set()

    def _look(self) -> None:
        while not self._end.wait(PERIOD_S):
            self._most = max(self._most, self._used())

    def _used(self) -> int:
        return (self._gpu.read().memory_used_nbytes or 0) if self._gpu is not None else 0
