"""Only one process at a time writes into a run's folder.

The claim is a lock on a file in the folder. The system releases it when the process ends, however it ends.
The file holds the number of the process, for messages. Where a file system has no locks, or over a network,
there is no claim. Who only asks whether there is one holds the lock together with others who ask, so that
whoever wants it can tell them from one who writes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from pathlib import Path

from kernels.errors import InputError, system_words

LOCK_FILE = ".lock"
_HELD = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
_ASKED_S = 5.0  # that others who only ask may take together
_FAR = 1 << 30  # the byte that Windows locks, behind what is to be read


class Claim:
    """The claim on a folder: `take` it before writing, `release` it when done."""

    def __init__(self, folder: Path) -> None:
        self._folder = Path(folder)
        self._descriptor: int | None = None

    def take(self) -> None:
        """Raises InputError, a sentence, where another process (or another part of this one) writes into the
        folder, or it cannot be written."""
        if self._descriptor is not None:
            return
        path = self._folder / LOCK_FILE
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            descriptor = os.open(path, flags, 0o666)
        except OSError as error:
            words = system_words(error)
            raise InputError(f"cannot write {path}: {words}; name another folder") from error
        try:
            until = time.monotonic() + _ASKED_S
            while True:
                try:
                    _lock(descriptor)
                    break
                except OSError as error:
                    late = time.monotonic() > until
                    if late or error.errno not in _HELD or not _is_asked(descriptor):
                        raise
                time.sleep(0.002)
        except OSError as error:
            whose = _whose(descriptor) if error.errno in _HELD else ""
            os.close(descriptor)
            if error.errno in _HELD:
                raise InputError(
                    f"{self._folder} is being measured by another process{whose}; wait for its end or end it"
                ) from error
            return
        self._descriptor = descriptor
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())

        from kernels.cache import clear_leftovers

        clear_leftovers(self._folder)  # of whoever wrote here before, and was killed

    def release(self) -> None:
        """Let others write."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __del__(self) -> None:
        self.release()


def claimed(folder: Path) -> bool:
    """Whether somebody writes into a folder now. It hinders nobody who takes the claim meanwhile."""
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False  # nobody ever wrote, or nobody can
    try:
        return not _is_asked(descriptor)
    finally:
        os.close(descriptor)


def _whose(descriptor: int) -> str:
    with contextlib.suppress(OSError, ValueError):
        os.lseek(descriptor, 0, os.SEEK_SET)
        return f" ({int(os.read(descriptor, 20))})"
    return ""


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)

    def _is_asked(descriptor: int) -> bool:
        """There is one kind of lock: who asks is taken for one who writes, if that is at the same moment."""
        try:
            _lock(descriptor)
        except OSError:
            return False
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return True
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _is_asked(descriptor: int) -> bool:
        """Whether nobody writes: at most others ask as well."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno not in _HELD  # without locks nobody can tell
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        return True
