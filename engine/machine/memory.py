"""How much memory of the host there is for who asks now."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil

# Where Linux holds a container to less than the machine has (cgroup v2, then v1).
_LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def free_nbytes() -> int:
    """Bytes that can be had: what the machine has available, and a container's limit leaves of it."""
    free = int(psutil.virtual_memory().available)
    for limit, usage in _LIMITS:
        with contextlib.suppress(OSError, ValueError):
            left = int(Path(limit).read_text()) - int(Path(usage).read_text())
            # What is used there counts files that are cached, which go when memory is wanted.
            free = min(free, max(left, 0) + _cached_nbytes(Path(limit).parent))
    return free


def _cached_nbytes(folder: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in (folder / "memory.stat").read_text().splitlines():
            name, _, value = line.partition(" ")
            if name in ("inactive_file", "total_inactive_file"):
                return int(value)
    return 0
