"""Runs a job without a window, for every kind of run: starts worker processes, passes their output to the
supervisor, does what it asks for, and writes the run folder. The command line calls `run`."""

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
from bench.words import streams
from kernels.errors import InputError

TICK_S = 0.1
HELD_OPEN_S = 2.0  # how long an output may be held open by others than the worker
TAIL_NBYTES = 4000


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    - measurements: one for each case that was settled by this call, in that order; a case that was cancelled
      has one as well (disposition "cancelled"). What was measured before a resume is not in it.
    - cancelled: the user cancelled the run.
    - reason: why the run ended early; "" if all cases were run or the user cancelled it.
    """

    measurements: tuple[Any, ...]
    cancelled: bool = False
    reason: str = ""


def worker_command(worker: Sequence[str]) -> list[str]:
    """The command line that starts a worker. worker: what follows `python -m` (Kind.worker). With
    `worker_environment` it works from any current folder, of which Python loads nothing (-P): a folder of
    somebody else's may hold a `bench.py`."""
    return [sys.executable, "-P", "-m", *worker]


def worker_environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment variables of a worker, so that it finds the packages of this program. base: the
    variables to start from, os.environ unless given; it is not changed."""
    environment = dict(os.environ if base is None else base)
    root = str(Path(__file__).resolve().parents[2])
    paths = [root, *filter(None, [environment.get("PYTHONPATH", "")])]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    told_not_to = environment.pop("PYTHONDONTWRITEBYTECODE", "")
    if (told_not_to or _without_bytecode()) and not environment.get("PYTHONPYCACHEPREFIX"):
        # As containers often have it. Without bytecode every worker compiles all that it imports, which is
        # half of its start; kept in the cache, none of it appears beside the sources.
        from kernels.cache import cache_dir

        environment["PYTHONPYCACHEPREFIX"] = str(cache_dir() / "bytecode")
    return environment


def _without_bytecode() -> bool:
    """Whether there is none of this program, nor can be: it was installed without, for others to use."""
    here = Path(__file__).parent
    return not (here / "__pycache__").is_dir() and not os.access(here, os.W_OK)


@dataclass(frozen=True)
class Ready:
    """A worker process that waits for its job, and the file that receives its standard error."""

    process: subprocess.Popen[bytes]
    log: IO[bytes]


class StandbyWorker:
    """A worker that is started before it is needed, so that its libraries are loaded when the next run
    begins. Nobody knows yet in which folder that will be. So its standard error goes to a temporary file,
    which is copied to the log of the run later."""

    def __init__(
        self, kind: Kind[Any, Any], renewed: bool = True, command: Sequence[str] | None = None
    ) -> None:
        """renewed: after each run start another one. command: starts a worker of your own instead of the
        kind's."""
        self.renewed = renewed
        self._command = [*(command or worker_command(kind.worker)), supervisor.WARM]
        self._ready: Ready | None = None

    def start(self) -> None:
        """Start the worker if none waits."""
        if self._ready is None:
            log = tempfile.TemporaryFile()  # noqa: SIM115 (it is closed with the worker)
            self._ready = Ready(start_worker(self._command, log), log)

    def take(self) -> Ready | None:
        """Hand over the waiting worker; the caller must end it. None if there is none."""
        ready, self._ready = self._ready, None
        return ready

    def __enter__(self) -> StandbyWorker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the worker if it still waits."""
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
    """Measure `cases` in worker processes until all are settled. Each measurement is written to `folder`
    before `on_event` gets it. `on_event` also gets each message of the worker.

    If a worker crashes or hangs, only the case that it was measuring is lost; the next worker measures the
    rest. Ctrl-C (or setting `stop`) ends the worker after its current pass; a second Ctrl-C kills it. Cases
    that were not measured are reported as cancelled and not written, so that a resume runs them. Ctrl-C takes
    effect between two steps, never within one: what has come is written whole, and no worker is left behind.

    - job: what the user asked for. cases: () lets the worker decide.
    - command: starts the workers, instead of the kind's own command. environment: variables that they get in
      addition to ours. Neither applies to the worker of `spare`.
    - spare: its worker is used first; if `spare.renewed`, the next one is started at the end.
    - on_worker: called as on_worker(pid, False) when a worker was started, and as on_worker(pid, True) before
      the supervisor has it killed.

    Raises InputError if another process writes to the folder (the worker of `spare` still waits then), and if
    it cannot be written (the running worker is ended first). Raises KeyboardInterrupt if Ctrl-C came when all
    cases were settled.
    """
    machine = Supervisor(folder.kind, job, cases, str(folder.path))
    with streams.counted_interrupts() as interrupts:
        folder.claim()
        first = spare.take() if spare is not None else None
        driver = _Driver(machine, folder, on_event, command or worker_command(folder.kind.worker), first)
        driver.environment, driver.on_worker = dict(environment or {}), on_worker
        try:
            driver.loop(stop, interrupts)
            driver.end()
            folder.check()
        finally:
            driver.end()
            folder.close()
            if spare is not None and spare.renewed:
                spare.start()
    if interrupts() and not machine.cancelled:
        raise KeyboardInterrupt
    return Outcome(tuple(driver.measured), machine.cancelled, machine.reason)


def start_worker(
    command: Sequence[str], log: Any, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a worker process, which then waits for its job on its standard input. log: an open file for its
    standard error. environment: variables that it gets in addition to ours."""
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
    """Kill a worker and all processes that it started, such as those of kernels. group: whether the worker
    leads a process group of its own (POSIX), as one of `start_worker` does."""
    from kernels import processes  # needed at the end alone

    processes.kill(pid, group)


class _Driver:
    """Carries out the actions of the supervisor: it owns the worker process, the thread that reads its
    output, and the files."""

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
        self._quiet_ticks = 0  # ticks since the worker ended, without a word
        # (process, bytes read or None at its end): one queue, so that its words come before its end.
        self._outputs: queue.Queue[tuple[subprocess.Popen[bytes], bytes | None]] = queue.Queue()

    def loop(self, stop: threading.Event | None, interrupts: Callable[[], int]) -> None:
        """Run until the supervisor has finished. interrupts: how often Ctrl-C was pressed so far."""
        seen = 0
        self._do(self.supervisor.start(time.monotonic()))
        while not self.supervisor.finished:
            self._step()
            while seen < interrupts():
                seen += 1
                if self.supervisor.cancelled and self._process is not None:
                    end_worker(self._process.pid)  # the second time the user means it
                self._do(self.supervisor.cancel(time.monotonic()))
            if stop is not None and stop.is_set():
                self._do(self.supervisor.cancel(time.monotonic()))

    def end(self) -> None:
        """Leave no process behind, whatever happened."""
        if self._process is not None:
            end_worker(self._process.pid)
            self._close(self._process)
            self._process = None
        self._keep_first_log()

    def _step(self) -> None:
        """Wait one tick for output of the worker, and pass to the supervisor what came: output, an exit, or
        nothing."""
        try:
            process, data = self._outputs.get(timeout=TICK_S)
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
        self._keep_first_log()
        self._do(self.supervisor.on_exit(code, self._tail(), time.monotonic()))

    def _notice_end(self) -> None:
        """Report that the worker has ended, although a process that it started keeps its output open."""
        process = self._process
        if process is None or process.poll() is None:
            self._quiet_ticks = 0
            return
        self._quiet_ticks += 1
        if self._quiet_ticks * TICK_S > HELD_OPEN_S:
            self._quiet_ticks = 0
            self._outputs.put((process, None))

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
                    self._folder.take_message(message)
                    self._on_event(message)

    def _launch(self, line: bytes) -> None:
        """Start a worker, or take the waiting one if it still lives, and send it its job."""
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
                    self._keep_first_log()
                self._process = start_worker(self._command, log, self.environment)
        process = self._process
        self.on_worker(process.pid, False)
        threading.Thread(target=self._read, args=(process,), daemon=True, name="worker output").start()
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # a worker that died at once is heard of by its exit
            process.stdin.write(line)
            process.stdin.flush()

    def _keep_first_log(self) -> None:
        """The standby worker has ended: append its standard error to the folder's log."""
        first, self._first = self._first, None
        if first is not None:
            with first.log as log, contextlib.suppress(OSError), self._folder.log.open("ab") as target:
                log.seek(0)
                shutil.copyfileobj(log, target)

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        """In a thread of its own: put all output of a process into the queue, then None."""
        assert process.stdout is not None
        # Until the process itself has ended: a grandchild may hold the pipe open for longer.
        with contextlib.suppress(OSError, ValueError):
            while data := os.read(process.stdout.fileno(), 1 << 16):
                self._outputs.put((process, data))
        self._outputs.put((process, None))

    @staticmethod
    def _close(process: subprocess.Popen[bytes]) -> int:
        """Wait for a process to end, and kill it after 10 s. Close its pipes. Returns its exit status."""
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
