"""Limits of time and memory for reading a model's file that came from elsewhere.

A file of two kilobytes can keep ONNX's own checks busy for ever, or ask for all memory. The limits are the
system's, because ONNX's code does not react to Python: a timer that ends the process, and a limit on its
data, beyond which a request for memory fails. Where the system has none (Windows), only time is limited, by
the process that waits.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil

SECONDS_VARIABLE, MEMORY_VARIABLE = "KERNELSCOPE_MODEL_SECONDS", "KERNELSCOPE_MODEL_MIB"
_MIB = 1 << 20
_STATUS = Path("/proc/self/status")


def seconds() -> float:
    """How long reading a model may take without a message."""
    return _set(SECONDS_VARIABLE) or 60.0


def nbytes() -> int:
    """How much memory reading a model may take: half of the machine's, at most 8 GiB, unless it is set."""
    wanted = _set(MEMORY_VARIABLE)
    return int(wanted * _MIB) if wanted else min(psutil.virtual_memory().total // 2, 8 << 30)


def too_long(what: str, limit: float) -> str:
    """The sentence for a file that took more time than allowed."""
    return (
        f"{what} took more than {limit:g} s to read and was given up; if you trust it, {SECONDS_VARIABLE}="
        f"{4 * limit:.0f} gives it longer"
    )


def too_large(what: str) -> str:
    """The sentence for a file that took more memory than allowed."""
    limit = nbytes() // _MIB
    return (
        f"{what} takes more than {limit:,} MiB of memory to read and was given up; if you trust it, "
        f"{MEMORY_VARIABLE}={4 * limit} gives it more"
    )


def limits_memory() -> bool:
    """Whether this system can limit how much memory `confined` lets a process take."""
    return _data_nbytes() is not None


@contextlib.contextmanager
def confined(limit_s: float) -> Iterator[None]:
    """A context in which the process may take only so much more memory than it has (then MemoryError), and
    ends after `limit_s` seconds by SIGALRM, even if no Python code runs any more. Not to be nested."""
    with _memory(nbytes()), _alarm(limit_s):
        yield


@contextlib.contextmanager
def _memory(more: int) -> Iterator[None]:
    used = _data_nbytes()
    if used is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = used + more
    for bound in (soft, hard):
        wanted = wanted if bound == resource.RLIM_INFINITY else min(wanted, bound)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data_nbytes() -> int | None:
    """The bytes of this process that RLIMIT_DATA limits; None where the system does not say."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmData:"):
                return int(line.split()[1]) << 10
    return None


@contextlib.contextmanager
def _alarm(limit_s: float) -> Iterator[None]:
    # Somebody else's timer, as a debugger's, is left alone.
    if not hasattr(signal, "setitimer") or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
        yield
        return
    alarm(limit_s)
    try:
        yield
    finally:
        alarm(0)


def alarm(limit_s: float) -> None:
    """End the process in so many seconds, unless this is called again; 0: never."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, limit_s)


def _set(variable: str) -> float:
    """A number above 0 that the user set, else 0."""
    with contextlib.suppress(ValueError):
        return max(0.0, float(os.environ.get(variable, "")))
    return 0.0
