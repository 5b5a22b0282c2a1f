"""One measurement at a time a device, whoever measures: checks share a device, what is timed has it alone.

A lock is a file that the system locks for a process (flock): it is gone with the process, however that ends.
Whoever wants a device alone is not kept waiting by those who share it and keep coming: they queue at a second
file, the gate, that he holds while he waits.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: a class is graded on Linux, and a run there has its machine for itself
    fcntl = None  # type: ignore[assignment]

VARIABLE = "KERNELSCOPE_DEVICE_LOCK"  # the lock of a process's own device
FOLDER = "KERNELSCOPE_DEVICE_LOCKS"  # where they lie, in place of the usual
POLL_S = 0.005
HEARD_S = 2.0


def folder() -> Path:
    """Where the files lie: the same for all processes of a user on this machine."""
    if override := os.environ.get(FOLDER):
        return Path(override)
    user = os.getuid() if hasattr(os, "getuid") else "all"
    return Path(tempfile.gettempdir()) / f"kernelscope-devices-{user}"


def path_of(device: str) -> Path:
    """The lock of "cpu", or of a GPU by its number or UUID."""
    return folder() / (re.sub(r"[^\w.-]+", "_", device) + ".lock")


class DeviceLock:
    """The lock in this file, which is made. waiting: called now and then while it is waited for."""

    def __init__(self, path: Path, waiting: Callable[[], None] = lambda: None) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._waiting = waiting
        self._shares = False
        self._gate, self._held = _opened(path.with_suffix(".gate")), _opened(path)

    @classmethod
    def of_this_process(cls, waiting: Callable[[], None] = lambda: None) -> DeviceLock | None:
        """The lock that whoever started this process names; None where nobody does."""
        named = os.environ.get(VARIABLE)
        return cls(Path(named), waiting) if named and fcntl is not None else None

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Beside others that share it."""
        self.share()
        try:
            yield
        finally:
            self._shares = False
            fcntl.flock(self._held, fcntl.LOCK_UN)

    def share(self) -> None:
        """Share it from now on."""
        if self._shares:
            return
        self._wait(self._gate, fcntl.LOCK_EX)
        try:
            self._wait(self._held, fcntl.LOCK_SH)
            self._shares = True
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)

    def give_way(self) -> bool:
        """Between two things that share it: let whoever waits to have it alone go first. Whether one did."""
        if not self._shares:
            return False
        try:
            fcntl.flock(self._gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._shares = False
            fcntl.flock(self._held, fcntl.LOCK_UN)
            self.share()
            return True
        fcntl.flock(self._gate, fcntl.LOCK_UN)
        return False

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """While nobody else has it, or shares it; whoever shared it before shares it again afterwards."""
        # First of all: two that hold a share and wait for each other would wait for ever.
        fcntl.flock(self._held, fcntl.LOCK_UN)
        self._wait(self._gate, fcntl.LOCK_EX)
        try:
            self._wait(self._held, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._held, fcntl.LOCK_SH if self._shares else fcntl.LOCK_UN)

    def close(self) -> None:
        for held in (self._gate, self._held):
            os.close(held)

    def _wait(self, file: int, how: int) -> None:
        heard = 0.0
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, how | fcntl.LOCK_NB)
                return
            if time.monotonic() - heard > HEARD_S:
                heard = time.monotonic()
                self._waiting()
            time.sleep(POLL_S)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
