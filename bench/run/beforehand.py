"""What should be known about the machine before something is measured on it: whether other programs use its
cores or its GPU, and whether another instance of this program measures, too. It only warns and never stops a
run.

A process that measures has an entry in the cache folder, named by its process number. An entry of a process
that has ended does not count, and is removed.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.run import nvml
from kernels.cache import atomic_file, cache_dir

LOOK_S = 0.5  # how long the machine is looked at; a worker takes longer to start
MUCH = 0.5  # cores, from which on others disturb what is measured
GPU_MUCH = 0.1  # of the time, from which on others disturb what is measured on a GPU
_NAMED = 0.5  # of what others use, that a single program has to use to be named
_SAME_S = 1.0  # by which two readings of when a process began may differ


class Looked(NamedTuple):
    """What was seen of the machine. Sentences that speak against measuring now; and by what factor work that
    keeps a core busy takes longer than on an idle machine."""

    sentences: tuple[str, ...] = ()
    slowed: float = 1.0


class _Entry(msgspec.Struct):
    """A process that measures: its number, when it began, what it measures."""

    pid: int
    began: float
    what: str


@contextlib.contextmanager
def looked_at(what: str, tell: Callable[[Looked], None]) -> Iterator[None]:
    """A context for as long as something is measured: other instances see it, and `tell` is called once, from
    another thread, with what was seen of the machine."""

    def look_and_tell() -> None:
        tell(look())

    looking = threading.Thread(target=look_and_tell, name="the machine beforehand", daemon=True)
    entry = Announced(what)
    entry.enter()
    looking.start()
    try:
        yield
    finally:
        looking.join(10 * LOOK_S)
        entry.leave()


def look(seconds: float = LOOK_S) -> Looked:
    """Look at the machine for so many seconds."""
    instances = other_instances()
    used = used_by_others(seconds)
    cores = len(_cores_of(os.getpid())) or os.cpu_count() or 1
    # What waits on cores that are not ours takes nothing from us: a share of it is counted.
    share = cores / (os.cpu_count() or cores)
    waiting = share * os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    sentences = filter(None, [instances, busy_words(used, cores), gpu_in_use()])
    return Looked(tuple(sentences), slowed(sum(used.values()), waiting, cores))


def slowed(used: float, waiting: float, cores: int) -> float:
    """By what factor work with one thread for each core takes longer, if cores are shared fairly. used: cores
    that others keep busy; waiting: how many threads wanted a core during the last minute. This says how many
    share the cores when all are taken; threads that have ended meanwhile are in it, too."""
    return 1.0 + max(used, waiting) / cores if used >= MUCH else 1.0


# ---------------------------------------------------------------------------------------- another instance


class Announced:
    """Tells other instances that this process measures, from `enter`, which a thread may call, to `leave`;
    after that `enter` does nothing. Where the cache cannot be written nobody is told."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._path: Path | None = None
        self._over = False
        self._lock = threading.Lock()

    def enter(self) -> None:
        import psutil

        path = _entries() / f"{os.getpid()}.json"
        entry = _Entry(os.getpid(), psutil.Process().create_time(), self._what)
        with self._lock, contextlib.suppress(OSError):
            if self._over:
                return
            with atomic_file(path) as temporary:
                temporary.write_bytes(msgspec.json.encode(entry))
            self._path = path

    def leave(self) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._over = True
            if self._path is not None:
                self._path.unlink(missing_ok=True)
                self._path = None


def other_instances() -> str:
    """A sentence where other processes of this program measure now, "" where none does."""
    import psutil

    names = []
    with contextlib.suppress(OSError):
        for path in sorted(_entries().glob("*.json")):
            with contextlib.suppress(OSError, msgspec.DecodeError, psutil.Error):
                entry = msgspec.json.decode(path.read_bytes(), type=_Entry)
                if entry.pid == os.getpid():
                    continue
                if _alive(entry):
                    names.append(entry)
                else:
                    path.unlink(missing_ok=True)
    if not names:
        return ""
    who = ", ".join(f"{entry.what} in process {entry.pid}" for entry in names)
    return (
        f"Kernelscope is measuring elsewhere on this machine ({who}): each disturbs the times of the other. "
        "This run goes on."
    )


def _alive(entry: _Entry) -> bool:
    import psutil

    try:
        return abs(psutil.Process(entry.pid).create_time() - entry.began) < _SAME_S
    except psutil.NoSuchProcess:
        return False


def _entries() -> Path:
    return cache_dir() / "measuring"


# ------------------------------------------------------------------------------------------ other programs


def used_by_others(seconds: float = LOOK_S) -> dict[str, float]:
    """How many cores each other program keeps busy, by its name; measured for so many seconds. Only programs
    that may run on a core of ours count: in a job of a batch system or under `taskset` many may not."""
    before = _spent()
    start = time.monotonic()
    time.sleep(seconds)
    after = _spent()
    took = max(1e-3, time.monotonic() - start)
    own = _own()
    used: dict[str, float] = {}
    for key, (name, spent) in after.items():
        if key[0] not in own:
            cores = (spent - before.get(key, ("", 0.0))[1]) / took
            used[name] = used.get(name, 0.0) + max(0.0, cores)
    return used


def gpu_in_use() -> str:
    """A sentence where kernels of other programs run on the GPU; "" where none do, or there is no GPU."""
    gpu = nvml.Gpu.first()
    busy = gpu.busy if gpu is not None else None
    if busy is None or busy < GPU_MUCH:
        return ""
    return (
        f"Another program keeps the GPU busy {busy * 100:.0f} % of the time: times on it may be unsteady, "
        "and are then marked as doubtful. This run goes on."
    )


def busy_words(used: dict[str, float], cores: int) -> str:
    """A sentence where other programs keep the cores busy, "" where the cores are idle enough. used: cores
    that each program keeps busy, by its name."""
    whole = sum(used.values())
    if whole < MUCH:
        return ""
    name, most = max(used.items(), key=lambda item: item[1])
    who, verb = ("Other programs", "use") if most < _NAMED * whole else (f"Another program, {name},", "uses")
    share = most if verb == "uses" else whole
    have = "this machine has" if cores == (os.cpu_count() or cores) else "this program may use"
    return (
        f"{who} {verb} {share * 100:.0f} % of one core ({have} {cores}): times may be unsteady, "
        "and are then marked as doubtful. This run goes on."
    )


def _spent() -> dict[tuple[int, float], tuple[str, float]]:
    """CPU seconds of each process, with its name, by its number and when it began."""
    import psutil

    by_process, ours = {}, _cores_of(os.getpid())
    for process in psutil.process_iter(["pid", "create_time", "name", "cpu_times"]):
        info = process.info
        theirs = _cores_of(process.pid)
        if ours and theirs and ours.isdisjoint(theirs):
            continue
        if info["cpu_times"] is not None and info["create_time"] is not None:
            times = info["cpu_times"]
            by_process[info["pid"], info["create_time"]] = (
                info["name"] or "a process",
                times.user + times.system,
            )
    return by_process


def _cores_of(pid: int) -> frozenset[int]:
    """The cores, by number, that a process may run on; none where it ended or the system does not say."""
    import psutil

    try:
        return frozenset(psutil.Process(pid).cpu_affinity())
    except (AttributeError, psutil.Error, OSError):
        return frozenset()


def _own() -> set[int]:
    """This process and all that it started, also indirectly."""
    import psutil

    me = psutil.Process()
    with contextlib.suppress(psutil.Error):
        return {me.pid, *(child.pid for child in me.children(recursive=True))}
    return {me.pid}
