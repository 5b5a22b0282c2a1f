"""The host's processors, caches and memory: how many threads a backend gets, what a cold run has to push out
of the caches, and how much memory is free."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
from pathlib import Path

import numpy as np
import psutil

_CACHE_FOLDER = Path("/sys/devices/system/cpu/cpu0/cache")
_CACHE_WHERE_UNKNOWN = 64 << 20
SPARE_CORES = 8  # from so many on, what may not be needed is made ready ahead
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def usable_cores() -> frozenset[int]:
    """The cores, by number, that the calling thread may run on: a container or taskset may grant fewer than
    the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def physical_cores() -> int:
    """Cores this process may use, hyper-threads counted once: the default of `Options.threads`."""
    return min(psutil.cpu_count(logical=False) or psutil.cpu_count() or 1, len(usable_cores()))


@functools.cache
def cpu_name() -> str:
    """The processor's name as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or os.environ.get("PROCESSOR_IDENTIFIER", "") or platform.machine()


@functools.cache
def last_level_cache_nbytes() -> int:
    """Size of the largest CPU cache, as Linux tells it; 64 MiB (large enough to be safe) elsewhere."""
    sizes = []
    for file in _CACHE_FOLDER.glob("index*/size"):
        text = file.read_text().strip()
        digits = text.rstrip("KMG")
        if digits.isdigit():
            sizes.append(int(digits) * _UNITS.get(text[len(digits) :], 1))
    return max(sizes, default=_CACHE_WHERE_UNKNOWN)


def all_caches_nbytes() -> int:
    """Bytes of all caches of all cores together, as Linux reports them; 0 where it does not."""
    return sum(_caches().values())


def level_nbytes(level: int) -> tuple[int, int]:
    """Bytes of the data caches of one level: of all cores together, and of the largest; 0 where not known."""
    sizes = [size for (at, kind, _), size in _caches().items() if at == str(level) and kind != "Instruction"]
    return sum(sizes), max(sizes, default=0)


@functools.cache
def _caches() -> dict[tuple[str, str, str], int]:
    """Sizes in bytes, by level, kind and the cores that share the cache."""
    sizes: dict[tuple[str, str, str], int] = {}
    for folder in _CACHE_FOLDER.parent.parent.glob("cpu[0-9]*/cache/index*"):
        try:
            level, kind, cores, size = (
                (folder / name).read_text().strip() for name in ("level", "type", "shared_cpu_list", "size")
            )
        except OSError:
            return {}
        digits = size.rstrip("KMG")
        if digits.isdigit():
            sizes[level, kind, cores] = int(digits) * _UNITS.get(size[len(digits) :], 1)
    return sizes


FLUSHED = 2.0  # of the last-level cache's size


@functools.cache
def _flush_buffer(nbytes: int) -> np.ndarray:
    return np.zeros(nbytes // 4, np.float32)


def overwrite_caches() -> None:
    """Write twice the last-level cache, so that the next run reads its weights and inputs from memory."""
    buffer = _flush_buffer(int(FLUSHED * last_level_cache_nbytes()))
    np.add(buffer, 1.0, out=buffer)


# Where Linux holds a container to less than the machine has (cgroup v2, then v1).
_LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # of glibc's mallopt
KEPT_NBYTES = 1 << 30


def keep_freed_memory() -> None:
    """From here on this process keeps KEPT_NBYTES of what it frees, where glibc is its library: arrays of
    many megabytes are otherwise given back each time, and the kernel of the system clears each page of the
    next one, which takes longer than most of what is done with it."""
    with contextlib.suppress(OSError, AttributeError):
        told = ctypes.CDLL(None).mallopt
        for what in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
            told(what, KEPT_NBYTES)


def free_nbytes() -> int:
    """Bytes that can be had: what the machine has available, and a container's limit leaves of it."""
    free = int(psutil.virtual_memory().available)
    for limit, usage in _LIMITS:
        with contextlib.suppress(OSError, ValueError):
            below_limit = int(Path(limit).read_text()) - int(Path(usage).read_text())
            # What is used there counts files that are cached, which go when memory is wanted.
            free = min(free, max(below_limit, 0) + _cached_nbytes(Path(limit).parent))
    return free


def _cached_nbytes(folder: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in (folder / "memory.stat").read_text().splitlines():
            name, _, value = line.partition(" ")
            if name in ("inactive_file", "total_inactive_file"):
                return int(value)
    return 0
