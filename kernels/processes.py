"""How processes stop, go on and end: a child ends with its parent, and with all that it started; and how they
begin without memory limits."""

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

# psutil is loaded by whoever ends others: an isolated process, which ends with its parent, starts without it.

LINUX = sys.platform == "linux"
# Where a stopped child would outlive its parent it is not stopped.
STOPS = LINUX or sys.platform == "win32"
# Where a process that stops itself is waited for by the one that started it.
STOPS_ITSELF = LINUX and hasattr(os, "waitid")
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def die_with_parent(parent: int) -> None:
    """In a child: end when the parent ends, or at once if it has ended already."""
    if LINUX:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def unlimited() -> None:
    """Lift the memory limit of this process: it may have been started by one that had limited itself while it
    read a file."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def keep_orphans() -> None:
    """What a child has started becomes ours when that child ends, so that `kill` finds it."""
    if LINUX:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def resume(pid: int) -> None:
    """Let a child, and what it started, go on."""
    if LINUX:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGCONT)
    elif STOPS:
        import psutil

        with contextlib.suppress(psutil.Error):
            psutil.Process(pid).resume()


def halt(pid: int) -> None:
    """Stop a child, and what it started, until `resume`."""
    if LINUX:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGSTOP)
    elif STOPS:
        import psutil

        with contextlib.suppress(psutil.Error):
            psutil.Process(pid).suspend()


def halted(pid: int, seconds: float) -> bool:
    """Stop a child, and what it started, until `resume`, and wait until all of its threads have stopped: one
    that the system works for (on its memory, say) goes on until that is done. False where it has not stopped
    in so many seconds. Where nobody sees a process stop (STOPS_ITSELF is False) it is not waited for."""
    halt(pid)
    until = time.monotonic() + seconds
    while STOPS_ITSELF:
        try:
            if os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG) is not None:
                break
        except ChildProcessError:  # it has ended, which whoever asks it next finds
            break
        if time.monotonic() > until:
            return False
        time.sleep(0.00002)
    return True


def stop_here() -> None:
    """Stop this process, with all its threads, until another process resumes it."""
    os.kill(os.getpid(), signal.SIGSTOP)


def until_stopped(pid: int) -> None:
    """Wait until every thread of a child has stopped. Raises ChildProcessError where it has ended."""
    os.waitid(os.P_PID, pid, os.WSTOPPED)


def went_on(pid: int) -> bool:
    """Whether a stopped child has gone on since, even if it has stopped again; reported only once. Raises
    ChildProcessError where it has ended."""
    return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WCONTINUED | os.WNOHANG) is not None


def has_stopped(pid: int) -> bool:
    """Whether a child has stopped since it last went on; reported only once."""
    with contextlib.suppress(ChildProcessError):
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG) is not None
    return False


# So long a process that was killed may take to give its memory back; and one that is being started may run.
ENDING_S = {"T": 1.0, "S": 0.02}
DIES_S = 5.0  # and one that is seen to be killed: on a busy machine it waits for a turn in which to end
_PF_EXITING = 0x4  # of a process's flags, in Linux's include/linux/sched.h


def ending(pid: int, rests: str, waits: bool = True) -> bool:
    """Whether a child has ended; its exit status is left for the caller to wait for. rests: the state in
    which the child normally is (T: stopped, S: waiting). If it was killed and is about to end, that is waited
    for; if it was stopped and somebody resumed it, it is stopped again. waits: else only a child that has
    ended already counts. On Linux; elsewhere False."""
    if not STOPS_ITSELF:
        return False
    began = time.monotonic()
    while True:
        try:
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return True
        except ChildProcessError:
            return False  # nobody's, or somebody else waits for it
        if not waits or (state := _state(pid).upper()) in (rests, "", "T"):
            return False
        dies = state != "S" and _dies(pid)
        if state == "S" or time.monotonic() - began > (DIES_S if dies else ENDING_S[rests]):
            if rests == "T":
                halt(pid)
            return False
        time.sleep(0.001)


def stopped(pid: int) -> bool:
    """Whether a process is stopped, or about to be: on a busy machine a signal waits until its process has a
    turn. On Linux; elsewhere False."""
    if not LINUX:
        return False
    # First what waits, then the states: a signal that waits no more has stopped the thread that took it, and
    # the others follow. One that is taken between a state read first and this would be seen by neither.
    try:
        waiting = _waiting(pid)
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    if waiting >> (signal.SIGSTOP - 1) & 1:
        return True
    return any(_state(pid, f"/task/{thread}") == "T" for thread in threads)


def _waiting(pid: int) -> int:
    """The signals that a process has not taken yet, one bit each. Raises OSError where there is none."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        told = dict(line.split(":", 1) for line in file)
    return int(told["ShdPnd"], 16) | int(told["SigPnd"], 16)


def _dies(pid: int) -> bool:
    """Whether a process was killed and has not ended yet: the signal waits, or it gives back what it had."""
    try:
        if _waiting(pid) >> (signal.SIGKILL - 1) & 1:
            return True
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return bool(int(file.read().rpartition(")")[2].split()[6]) & _PF_EXITING)
    except OSError:
        return False


def _state(pid: int, thread: str = "") -> str:
    """The state of a process, a letter as in proc(5); "" where it cannot be read. thread: or of one of its
    threads ("/task/12")."""
    try:
        with open(f"/proc/{pid}{thread}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def signal_name(code: int) -> str:
    """The name of the signal of a negative exit status."""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def exit_words(code: int) -> str:
    """An exit status in words: "was killed by SIGSEGV (segmentation fault)", "ended with exit code 3"."""
    if code >= 0:
        # Windows reports a fault by its NTSTATUS.
        known = {0xC0000005: " (access violation)", 0xC00000FD: " (stack overflow)"}
        return f"ended with exit code {code}{known.get(code & 0xFFFFFFFF, '')}"
    try:
        number = signal.Signals(-code)
    except ValueError:
        return f"was killed by signal {-code}"
    text = (signal.strsignal(number) or "").lower()
    hint = ", which is how the system ends a process when memory runs out" if number.name == "SIGKILL" else ""
    return f"was killed by {number.name} ({text}){hint}"


def last_line(stderr: str) -> str:
    """The last line that is not blank, shortened for a sentence. The lines of Python's fault handler are left
    out: they say where a process died, not why."""
    stderr = stderr.partition("Fatal Python error:")[0]
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def worked_ns(pid: int) -> int:
    """CPU time of all threads of a process, in nanoseconds; 0 where the system does not say."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)  # the clock of clock_getcpuclockid(3)
    except (OSError, AttributeError):  # Windows has no such clocks
        return 0


def threads(pid: int) -> int:
    """The number of threads of a process. On Linux. Raises OSError."""
    links = os.stat(f"/proc/{pid}/task").st_nlink  # which is not kept everywhere
    return links - 2 if links > 2 else len(os.listdir(f"/proc/{pid}/task"))


def children(pid: int, of: Collection[int] = ()) -> set[int]:
    """The processes whose parent is `pid`. of: only those that these of its threads started, where the system
    tells that."""
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
    """The processes that `pid` started, and all that those started."""
    import psutil

    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def worked_s(pid: int) -> dict[int, float]:
    """CPU seconds of a process and of each process below it, by number."""
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
    """Kill a process and all that it started. Returns the numbers of the latter; those that were its children
    become ours (`keep_orphans`). group: the process leads a process group."""
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
    """On Windows: a job object; a child in it, and all that it starts, ends with this process. None
    elsewhere."""
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
