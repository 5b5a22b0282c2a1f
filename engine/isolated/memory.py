"""Memory that a process shares with its children: a file without a name where there are such (Linux), else a
temporary file, mapped by both."""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ALIGNMENT = 256
NAMELESS = os.name == "posix"  # its descriptor is sent to whoever maps it; elsewhere its path is told


@dataclass(frozen=True)
class Spec:
    """Shape and NumPy dtype name of an array that lies in shared memory."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


def aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def placed(nbytes: Sequence[int]) -> tuple[list[int], int]:
    """Where so many bytes each lie one after another, and how long that is."""
    offsets, end = [], 0
    for size in nbytes:
        offsets.append(end)
        end = aligned(end + size)
    return offsets, max(end, ALIGNMENT)


class Block:
    """Bytes of this process's that children may map. Close the descriptor as soon as all have it: the memory
    lives as long as somebody maps it. Its length is sealed where the system can do that: who touches bytes
    that somebody else has cut off is killed. sealed_later: `seal` will be called."""

    def __init__(self, nbytes: int, sealed_later: bool = False) -> None:
        self.nbytes = max(nbytes, 1)
        self.path = ""
        self.fd = self._made()
        os.ftruncate(self.fd, self.nbytes)
        self._seal(("SHRINK", "GROW") if sealed_later else ("SHRINK", "GROW", "SEAL"))
        self.bytes = np.frombuffer(mmap.mmap(self.fd, self.nbytes), np.uint8)

    def _made(self) -> int:
        if sys.platform == "linux":
            return os.memfd_create("kernelscope", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        import tempfile

        fd, self.path = tempfile.mkstemp(prefix="kernelscope-")
        if NAMELESS:
            os.unlink(self.path)
            self.path = ""
        return fd

    def seal(self) -> None:
        """Nobody changes these bytes any more, so that children may share them; where the system can
        promise that."""
        self.bytes = np.empty(0, np.uint8)  # no writable map of them may be left
        self._seal(("WRITE", "SEAL"))

    def _seal(self, names: Sequence[str]) -> None:
        if sys.platform == "linux":
            import fcntl

            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, sum(getattr(fcntl, f"F_SEAL_{name}") for name in names))

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)
        if self.path:
            with contextlib.suppress(OSError):  # Windows: as long as a child maps it
                os.unlink(self.path)


def attach(fd: int, path: str, nbytes: int, own: bool) -> np.ndarray:
    """The bytes of another process's block; `own`: what is written there is seen here alone."""
    if fd < 0:
        fd = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        access = mmap.ACCESS_COPY if own else mmap.ACCESS_WRITE
        return np.frombuffer(mmap.mmap(fd, nbytes, access=access), np.uint8)
    finally:
        os.close(fd)
