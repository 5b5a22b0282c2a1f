"""The parent of a worker without a window, for runs of every kind: starts the process, passes its messages to
the supervisor, writes the run folder."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bench.results.folder import Folder
from bench.results.kinds import Kind
from bench.run import supervisor
from bench.run.supervisor import Supervisor
from kernels.errors import InputError

TICK_S = 0.1
HELD_OPEN_S = 2.0  # how long an output may be held open by others than the worker
TAIL_NBYTES = 4000


@dataclass(frozen=True)
class Outcome:
    """How a run ended: what was measured now (not before a resume), whether the user cancelled it, and why
    the worker gave up ("" where all cases were run)."""

    measurements: tuple[Any, ...]
    cancelled: bool = False
    reason: str = ""


def worker_command(worker: Sequence[str]) -> list[str]:
    """The command that starts a kind's `worker`; with `worker_environment` it works from any folder."""
    return [sys.executable, "-m", *worker]


def worker_environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment (os.environ, or `base`) in which `worker_command` finds the program's packages."""
    environment = dict(os.environ if base is None else base)
    root = str(Path(__file__).resolve().parents[2])
    paths = [root, *filter(None, [environment.get("PYTHONPATH", "")])]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    if environment.pop("PYTHONDONTWRITEBYTECODE", "") and not environment.get("PYTHONPYCACHEPREFIX"):
        # As containers often have it. Without bytecode every worker compiles all that it imports, which is
        # half of its start; kept in the cache, none of it appears beside the sources.
        from kernels.cache import cache_dir

        environment["PYTHONPYCACHEPREFIX"] = str(cache_dir() / "bytecode")
    return environment


@dataclass(frozen=True)
class Ready:
    """A worker that waits for its job, and the file of its standard error."""

    process: subprocess.Popen[bytes]
    log: IO[bytes]


class StandbyWorker:
    """A worker of a kind that is started in advance, with its libraries loaded, for the next run. Its
    standard error goes to a file without a name, because the log that it belongs to is not known yet."""

    def __init__(
        self, kind: Kind[Any, Any], renewed: bool = True, command: Sequence[str] | None = None
    ) -> None:
        """renewed: start another whenever one has ended; command: of another worker than the kind's."""
        self.renewed = renewed
        self._command = [*(command or worker_command(kind.worker)), supervisor.WARM]
        self._ready: Ready | None = None

    def start(self) -> None:
        """Start one, if there is none."""
        if self._ready is None:
            log = tempfile.TemporaryFile()  # noqa: SIM115 (it is closed with the worker)
            self._ready = Ready(start_worker(self._command, log), log)

    def take(self) -> Ready | None:
        ready, self._ready = self._ready, None
        return ready

    def __enter__(self) -> StandbyWorker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker that nobody took."""
        ready = self.take()
        if ready is not None:
            end_worker(ready.process.pid)
            ready.process.wait()
            for file in (ready.process.stdin, ready.process.stdout, ready.log):
                if file is not None:
                    file.close()


def run(
    job: Any,
    cases: Sequence[Any],
    folder: Folder[Any, Any],
    on_event: Callable[[Any], None] = lambda event: None,
    *,
    command: Sequence[str] | None = None,
    environment: Mapping[str, str] | None = None,
    stop: threading.Event | None = None,
    spare: StandbyWorker | None = None,
    on_worker: Callable[[int, bool], None] = lambda pid, ends: None,
) -> Outcome:
    """Run `cases` in workers until all are measured, writing each measurement before `on_event` hears of it.

    A worker that crashes or hangs costs the case in flight; the next worker goes on with the rest. Ctrl-C (or
    `stop`) ends the worker after the pass it is in; a second Ctrl-C kills it. What was not measured is
    reported as cancelled but not written, so that a resume runs it. `command` starts another worker than the
    kind's own, and `environment` is what it has beside ours. spare: whose worker is taken first, and who
    starts the next one. on_worker: told of a worker's number when it was started, and before it is killed
    (True). Raises InputError where the folder cannot be written (the worker is ended first).
    """
    machine = Supervisor(folder.kind, job, cases, str(folder.path))
    first = spare.take() if spare is not None else None
    folder.claim()
    driver = _Driver(machine, folder, on_event, command or worker_command(folder.kind.worker), first)
    driver.environment, driver.on_worker = dict(environment or {}), on_worker
    try:
        driver.loop(stop)
    finally:
        driver.end()
        folder.close()
        if spare is not None and spare.renewed:
            spare.start()
    return Outcome(tuple(driver.measured), machine.cancelled, machine.reason)


def start_worker(
    command: Sequence[str], log: Any, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a worker that waits for its job; its standard error goes to the open file `log`. environment:
    variables beside ours."""
    # A session of its own: Ctrl-C in the terminal reaches us alone, and we end the worker in order.
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env=worker_environment({**os.environ, **(environment or {})}),
        start_new_session=True,
    )


def end_worker(pid: int, group: bool = True) -> None:
    """Kill a worker and all that it started, such as processes of kernels. group: it leads a process
    group."""
    from kernels import processes  # needed at the end alone

    processes.kill(pid, group)


class _Driver:
    """Does what the supervisor says: processes, threads, files."""

    def __init__(
        self,
        machine: Supervisor,
        folder: Folder[Any, Any],
        on_event: Callable[[Any], None],
        command: Sequence[str],
        first: Ready | None = None,
    ) -> None:
        self._first = first
        self.supervisor = machine
        self.measured: list[Any] = []
        self._folder = folder
        self._on_event = on_event
        self._command = list(command)
        self.environment: dict[str, str] = {}
        self.on_worker: Callable[[int, bool], None] = lambda pid, ends: None
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0
        self._quiet = 0  # ticks since the worker ended, without a word
        # (process, bytes read or None at its end): one queue, so that its words come before its end.
        self._heard: queue.Queue[tuple[subprocess.Popen[bytes], bytes | None]] = queue.Queue()

    def loop(self, stop: threading.Event | None) -> None:
        self._do(self.supervisor.start(time.monotonic()))
        while not self.supervisor.finished:
            try:
                self._step()
                if stop is not None and stop.is_set():
                    self._do(self.supervisor.cancel(time.monotonic()))
            except KeyboardInterrupt:
                # The second time the user means it.
                if self.supervisor.cancelled and self._process is not None:
                    end_worker(self._process.pid)
                self._do(self.supervisor.cancel(time.monotonic()))

    def end(self) -> None:
        """Leave no process behind, whatever happened."""
        if self._process is not None:
            end_worker(self._process.pid)
            self._close(self._process)
            self._process = None
        self._let_go()

    def _step(self) -> None:
        try:
            process, data = self._heard.get(timeout=TICK_S)
        except queue.Empty:
            self._do(self.supervisor.tick(time.monotonic()))
            self._notice_end()
            return
        if process is not self._process:
            return  # the last words of one that was given up
        if data is not None:
            self._do(self.supervisor.feed(data, time.monotonic()))
            self._do(self.supervisor.tick(time.monotonic()))
            return
        code = self._close(process)
        self._process = None
        self._let_go()
        self._do(self.supervisor.on_exit(code, self._tail(), time.monotonic()))

    def _notice_end(self) -> None:
        """Notice that a worker has ended although something that it started keeps its output open."""
        process = self._process
        if process is None or process.poll() is None:
            self._quiet = 0
            return
        self._quiet += 1
        if self._quiet * TICK_S > HELD_OPEN_S:
            self._quiet = 0
            self._heard.put((process, None))

    def _do(self, actions: Sequence[supervisor.Action]) -> None:
        for action in actions:
            match action:
                case supervisor.LaunchWorker(line):
                    self._launch(line)
                case supervisor.Stop():
                    if self._process is not None and self._process.stdin is not None:
                        with contextlib.suppress(OSError):
                            self._process.stdin.close()
                case supervisor.Kill():
                    if self._process is not None:
                        self.on_worker(self._process.pid, True)
                        end_worker(self._process.pid)
                case supervisor.Result(measurement):
                    # Cancelled is said and not written: a resume runs the case.
                    if measurement.disposition != "cancelled":
                        self._folder.append(measurement)
                    self.measured.append(measurement)
                    self._on_event(measurement)
                case supervisor.Say(message):
                    self._folder.heard(message)
                    self._on_event(message)

    def _launch(self, line: bytes) -> None:
        try:
            log = self._folder.log.open("ab")
        except OSError as error:
            raise InputError(f"cannot write {self._folder.log}: {error.strerror}") from error
        with log:
            self._log_start = log.tell()
            if self._first is not None and self._first.process.poll() is None:
                self._process = self._first.process
            else:
                if self._first is not None:
                    self._close(self._first.process)
                    self._let_go()
                self._process = start_worker(self._command, log, self.environment)
        process = self._process
        self.on_worker(process.pid, False)
        threading.Thread(target=self._read, args=(process,), daemon=True, name="worker output").start()
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # a worker that died at once is heard of by its exit
            process.stdin.write(line)
            process.stdin.flush()

    def _let_go(self) -> None:
        """The first worker has ended: append its standard error to the folder's log."""
        first, self._first = self._first, None
        if first is not None:
            with first.log as log, contextlib.suppress(OSError), self._folder.log.open("ab") as target:
                log.seek(0)
                shutil.copyfileobj(log, target)

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        # Until the process itself has ended: a grandchild may hold the pipe open for longer.
        with contextlib.suppress(OSError, ValueError):
            while data := os.read(process.stdout.fileno(), 1 << 16):
                self._heard.put((process, data))
        self._heard.put((process, None))

    @staticmethod
    def _close(process: subprocess.Popen[bytes]) -> int:
        try:
            code = process.wait(timeout=10)
        except subprocess.TimeoutExpired:  # it closed its output and lives on
            process.kill()
            code = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        return code

    def _tail(self) -> str:
        """The end of the standard error of the worker that ended."""
        try:
            with self._folder.log.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(self._log_start, size - TAIL_NBYTES))
                return file.read().decode("utf-8", "replace")
        except OSError:
            return ""
