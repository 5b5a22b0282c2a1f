"""How processes end, with their parent and all that they started with them; and that they begin unlimited."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psutil

# psutil is loaded by whoever ends others: a process apart, which ends with its parent, starts without it.

LINUX = sys.platform == "linux"
# Where a stopped child would outlive its parent it is not stopped.
STOPS = LINUX or sys.platform == "win32"
# Where a process that stops itself is waited for by the one that started it.
STOPS_ITSELF = LINUX and hasattr(os, "waitid")
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def die_with_parent(parent: int) -> None:
    """In a child: end as soon as the parent has; at once where it has already."""
    if LINUX:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def unlimited() -> None:
    """This process may take what memory the system grants: it may have been started by one that had limited
    itself for as long as it read a file."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def keep_orphans() -> None:
    """What a child of ours started stays below us when that child is gone, where `kill` finds it."""
    if LINUX:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def resume(pid: int) -> None:
    """Have a child, and what it started, go on."""
    if LINUX:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGCONT)
    elif STOPS:
        import psutil

        with contextlib.suppress(psutil.Error):
            psutil.Process(pid).resume()


def halt(pid: int) -> None:
    """Have a child, and what it started, do nothing until `resume`."""
    if LINUX:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGSTOP)
    elif STOPS:
        import psutil

        with contextlib.suppress(psutil.Error):
            psutil.Process(pid).suspend()


def stop_here() -> None:
    """Stop this process, all of its threads, until somebody has it go on."""
    os.kill(os.getpid(), signal.SIGSTOP)


def until_stopped(pid: int) -> None:
    """Wait until every thread of a child of ours has stopped. Raises ChildProcessError where it has ended."""
    os.waitid(os.P_PID, pid, os.WSTOPPED)


def went_on(pid: int) -> bool:
    """Whether a child of ours that we saw stop has gone on since, whether or not it has stopped again; told
    once. Raises ChildProcessError where it has ended."""
    return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WCONTINUED | os.WNOHANG) is not None


def has_stopped(pid: int) -> bool:
    """Whether a child of ours has stopped since it last went on; told once."""
    with contextlib.suppress(ChildProcessError):
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG) is not None
    return False


# So long a process that was killed may take to give its memory back; and one that is being started may run.
ENDING_S = {"T": 1.0, "S": 0.02}


def ending(pid: int, rests: str, waits: bool = True) -> bool:
    """Whether a child of ours has ended; what it ended of is left to whoever waits for it. rests: the state
    in which it is where nobody has done anything to it (T: it was stopped, S: it waits): where it was killed
    and is not over yet, that is waited for; one that was stopped, and that somebody had go on, is stopped
    again. waits: else only what is over counts. Linux; elsewhere nobody has ended."""
    if not STOPS_ITSELF:
        return False
    until = time.monotonic() + ENDING_S[rests]
    while True:
        try:
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return True
        except ChildProcessError:
            return False  # nobody's, or somebody else waits for it
        if not waits or (state := _state(pid).upper()) in (rests, "", "T"):
            return False
        if state == "S" or time.monotonic() > until:
            if rests == "T":
                halt(pid)
            return False
        time.sleep(0.001)


def stopped(pid: int) -> bool:
    """Whether a process is stopped. Linux; elsewhere it is not known."""
    return LINUX and _state(pid) == "T"


def _state(pid: int) -> str:
    """A letter, as proc(5) has them; "" where it cannot be read."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def words(code: int) -> str:
    """How a process ended, of what it is waited for."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def worked_ns(pid: int) -> int:
    """Nanoseconds of processors that all threads of a process have had; 0 where the system does not tell."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)  # the clock of clock_getcpuclockid(3)
    except OSError:
        return 0


def threads(pid: int) -> int:
    """How many threads a process has. Linux. Raises OSError."""
    links = os.stat(f"/proc/{pid}/task").st_nlink  # which is not kept everywhere
    return links - 2 if links > 2 else len(os.listdir(f"/proc/{pid}/task"))


def children(pid: int, of: Collection[int] = ()) -> set[int]:
    """The processes whose parent this one is. of: by these of its threads alone, where the system tells that;
    the others are left out."""
    pids: set[int] = set()
    if os.path.exists(f"/proc/{pid}/task/{pid}/children"):  # which not every Linux has
        with contextlib.suppress(OSError):
            for thread in of or os.listdir(f"/proc/{pid}/task"):
                with (
                    contextlib.suppress(FileNotFoundError, ProcessLookupError),
                    open(f"/proc/{pid}/task/{thread}/children") as file,
                ):
                    pids.update(map(int, file.read().split()))
        return pids
    import psutil

    with contextlib.suppress(psutil.Error):
        pids = {process.pid for process in psutil.Process(pid).children()}
    return pids


OURS: set[int] = set()
"""Processes that this program started on its own behalf while kernels may run: no kernel did."""


def started_by(pid: int) -> list[psutil.Process]:
    """The processes that this one started, and theirs."""
    import psutil

    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def worked_s(pid: int) -> dict[int, float]:
    """Seconds of a processor that a process has had, and each that it started, by number."""
    import psutil

    seconds = {}
    with contextlib.suppress(psutil.Error):
        this = psutil.Process(pid)
        for process in (this, *this.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                seconds[process.pid] = times.user + times.system
    return seconds


def kill(pid: int, group: bool = True) -> set[int]:
    """End a process and all that it started; the numbers of the latter, which become ours if they were its
    children (`keep_orphans`). group: it leads a group of its own."""
    import psutil

    others: dict[int, psutil.Process] = {}
    # What is killed cannot start another: once nothing new is found, all are.
    while started := {p.pid: p for p in started_by(pid) if p.pid not in others}:
        others |= started
        for process in started.values():
            with contextlib.suppress(psutil.Error):
                process.suspend() if os.name == "posix" else process.kill()
    if group and os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(psutil.Error):
        psutil.Process(pid).kill()
    for process in others.values():
        with contextlib.suppress(psutil.Error):
            process.kill()
    return set(others)


def job_object() -> Any:
    """On Windows: what a child is put into so that it, and all that it starts, ends when this process does.
    None elsewhere."""
    if sys.platform != "win32":
        return None
    import ctypes
    from ctypes import wintypes

    class Limits(ctypes.Structure):  # JOBOBJECT_EXTENDED_LIMIT_INFORMATION
        _fields_ = (
            ("times", ctypes.c_int64 * 2),
            ("flags", wintypes.DWORD),
            ("working_set", ctypes.c_size_t * 2),
            ("processes", wintypes.DWORD),
            ("affinity", ctypes.c_size_t),
            ("priorities", wintypes.DWORD * 2),
            ("io", ctypes.c_uint64 * 6),
            ("memory", ctypes.c_size_t * 4),
        )

    kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel32.CreateJobObjectW.restype = wintypes.HANDLE
    kernel32.SetInformationJobObject.argtypes = (
        wintypes.HANDLE, ctypes.c_int, ctypes.c_void_p, wintypes.DWORD,
    )  # fmt: skip
    kernel32.AssignProcessToJobObject.argtypes = (wintypes.HANDLE, wintypes.HANDLE)
    job = kernel32.CreateJobObjectW(None, None)
    limits = Limits(flags=0x2000)  # JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
    kernel32.SetInformationJobObject(job, 9, ctypes.byref(limits), ctypes.sizeof(limits))
    return kernel32, job
