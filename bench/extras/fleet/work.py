"""A piece of work for one device: cases of one job that are measured together, by the worker of their kind.
`perform` does it on the machine where it is called; whoever hands it out (`executor`) takes what it says to
the one folder of the run."""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from bench.extras.fleet import device_lock
from bench.extras.fleet.devices import Place
from bench.results.kinds import Kind, kinds
from bench.results.messages import CaseStarted
from bench.results.records import FROM_OUTSIDE, KILLED_BY
from bench.run import client, elsewhere
from bench.run.client import Outcome
from kernels import processes

# Of the time that a case may take the part that one process has to have worked, and not waited for a busy
# machine, for its lateness to be its own.
WORKED = 0.8
TRIES = 2  # of a case whose worker was killed by somebody, or that ended in a way worth a second look


class Walls(Protocol):
    """See bench.extras.course.walls."""

    def around(
        self, command: list[str], folder: Path, environment: Mapping[str, str]
    ) -> contextlib.AbstractContextManager[tuple[list[str], Mapping[str, str]]]: ...


@dataclass(frozen=True)
class Work:
    """name: in words. kind: the name of one that is registered, or where its descriptor is, "module:NAME".
    device: "cpu" or "cuda"; gpu: which kind of GPU, as Ray calls it ("": any). files: laid into its folder
    first, by relative name. keeps: whether files that the worker writes there belong to the run. alone: the
    device is nobody else's from the beginning to the end (else the worker itself asks for it). cores: it
    keeps busy, where it runs on the CPU and not alone. kept: its folder where a place elsewhere does it,
    which stays until all is handed over; first: the place that has some of it already, by its name. twice:
    dispositions that are settled at the second time only: a busy machine may make a case late that is no
    endless one."""

    name: str
    kind: str
    job: Any
    cases: tuple[Any, ...]
    device: str = "cpu"
    gpu: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    keeps: bool = False
    alone: bool = False
    cores: int = 1
    kept: str = ""
    first: str = ""
    twice: tuple[str, ...] = ()
    walls: Walls | None = None

    @property
    def described(self) -> Kind[Any, Any]:
        module, _, name = self.kind.partition(":")
        if not name:
            return next(kind for kind in kinds() if kind.name == self.kind)
        found: Kind[Any, Any] = getattr(importlib.import_module(module), name)
        return found

    @property
    def backends(self) -> frozenset[str]:
        """What has to be there to run it."""
        own = f"engine-{self.device}"
        return frozenset(getattr(case, "backend", own) for case in self.cases)

    def left(self, done: set[str]) -> Work | None:
        """Without the cases of these keys; None where none is left."""
        rest = tuple(case for case in self.cases if case.key not in done)
        return replace(self, cases=rest) if rest else None


@dataclass(frozen=True)
class Said:
    """Something that a worker said, or that is settled. message: of the worker, or a measurement where
    `settled`; file: (relative name, bytes) that belongs to the run. place: where. problem: why the rest of
    the work was given up."""

    message: Any = None
    settled: bool = False
    file: tuple[str, bytes] | None = None
    place: str = ""
    problem: str = ""


Say = Callable[[Said], None]


class _Kept:
    """A folder for the time being: what the client writes goes on to `say`."""

    def __init__(self, path: Path, kind: Kind[Any, Any], say: Say, place: str) -> None:
        self.path, self.kind, self._say, self._place = path, kind, say, place
        self.log = path / "worker.log"
        self.again: list[Any] = []  # to be tried once more
        self.twice: tuple[str, ...] = ()
        self.last = False
        self.limit_s = float("inf")  # of a case
        self.told: set[str] | None = None  # files that need not go on any more; None: none is to
        self._worker = 0
        self._case: Any = None
        self._before: dict[int, float] = {}  # seconds of a processor by process, as the case began
        self._worked_s = 0.0  # the most of one process in the case whose worker was killed

    def claim(self) -> None:
        """Nobody else knows it."""

    def check(self) -> None:
        """It has no file that others could change."""

    def close(self) -> None:
        """See `claim`."""

    def worker(self, pid: int, ends_now: bool) -> None:
        """See bench.run.client.run."""
        self._worker = pid
        if ends_now:
            now = processes.worked_s(pid)
            self._worked_s = max(
                (spent - self._before.get(it, 0.0) for it, spent in now.items()), default=0.0
            )

    def take_message(self, message: object) -> None:
        if self.twice and isinstance(message, CaseStarted) and message.case != self._case:
            self._case, self._before, self._worked_s = message.case, processes.worked_s(self._worker), 0.0
        self._say(Said(message, place=self._place))

    def append(self, measurement: Any) -> None:
        killed = measurement.facts.get(KILLED_BY, "") in FROM_OUTSIDE
        if not self.last and (killed or self._doubtful(measurement)):
            self.again.append(measurement.case)
            return
        if self.told is not None:  # before what names them
            self._tell_files(self.told)
        self._say(Said(measurement, settled=True, place=self._place))

    def _doubtful(self, measurement: Any) -> bool:
        """Whether it may end otherwise at the second time: not what is late and worked all the while."""
        late = measurement.disposition == "timed_out" and self._worked_s >= WORKED * self.limit_s
        return measurement.disposition in self.twice and not late

    def _tell_files(self, told: set[str]) -> None:
        for part in self.kind.parts:
            for path in sorted((self.path / part).rglob("*")):
                name = path.relative_to(self.path).as_posix()
                if name not in told and path.is_file() and not path.is_symlink():
                    told.add(name)
                    self._say(Said(file=(name, path.read_bytes()), place=self._place))


def perform(work: Work, place: Place, say: Say, stop: threading.Event | None = None) -> Outcome:
    """Do it here, on the device `place`. Everything is said; returns how it ended. A case whose worker was
    killed from outside is tried once more."""
    kind, left = work.described, contextlib.ExitStack()
    lasts = bool(place.on and work.kept)
    if lasts:  # a program that is killed leaves it, and the next one knows by it what to ask for there
        base = Path(work.kept)
        base.mkdir(parents=True, exist_ok=True)
    else:  # its name says whose it is: what was killed leaves it, and the next one removes it
        base = Path(tempfile.mkdtemp(prefix=f"kernelscope-work-{os.getpid()}-"))
    outcome = Outcome((), reason="it did not begin")
    try:
        for name, text in work.files.items():
            path = base / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        command = client.worker_command(kind.worker)
        if place.on:
            command = elsewhere.worker_command(place.on, kind, files=bool(work.files))
        environment: Mapping[str, str] = dict(place.environment) | {device_lock.VARIABLE: str(place.lock)}
        if work.walls is not None:
            _seed_cache(base, place, getattr(work.job, "threads", None))
            command, environment = left.enter_context(work.walls.around(command, base, environment))
        kept = _Kept(base, kind, say, place.name)
        kept.told, kept.twice = set(work.files) if work.keeps else None, work.twice
        kept.limit_s = work.job.timeout_s * work.cores
        cases = work.cases
        for number in range(TRIES):
            kept.again, kept.last = [], number == TRIES - 1
            with _held(place, alone=work.alone):
                outcome = client.run(
                    work.job,
                    cases,
                    kept,  # type: ignore[arg-type]  # what a client asks of a folder
                    command=command,
                    environment=environment,
                    stop=stop,
                    on_worker=kept.worker,
                )
            if not kept.again or outcome.cancelled:
                break
            cases = tuple(kept.again)
        return outcome
    finally:
        left.close()
        if not (lasts and outcome.reason and elsewhere.of_run(base)):
            shutil.rmtree(base, ignore_errors=True)
        if lasts:
            with contextlib.suppress(OSError):  # others are at work
                base.parent.rmdir()


@contextlib.contextmanager
def _held(place: Place, alone: bool) -> Any:
    if not alone or device_lock.fcntl is None:
        yield
        return
    lock = device_lock.DeviceLock(place.lock)
    try:
        with lock.alone():
            yield
    finally:
        lock.close()


def _seed_cache(base: Path, place: Place, threads: int | None) -> None:
    """What a worker with a cache of its own would else measure anew: what this machine reaches."""
    from bench.measure import limits
    from kernels.cache import cache_dir

    if limits.known(place.device, threads) is None:
        code = "import sys; from bench.measure import limits; "
        code += "limits.limits(sys.argv[1], int(sys.argv[2]) or None, again=False)"
        environment = client.worker_environment({**os.environ, **place.environment})
        with _held(place, alone=True), contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                [sys.executable, "-c", code, place.device, str(threads or 0)],
                env=environment,
                timeout=60,
                check=False,
            )
    kept = cache_dir() / "limits"
    with contextlib.suppress(OSError):
        if kept.is_dir():
            shutil.copytree(kept, base / "cache" / "limits")
