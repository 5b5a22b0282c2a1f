"""The worker as a process of the window, driven by the same supervisor as the headless client; fed in small
batches.

A worker is started ahead of need ("warm"): it loads its libraries, tells of its machine and waits for a job,
so that the first job starts at once. Everything it writes is taken on a timer, a slice of bytes at a time, so
that a worker that floods its output never holds the window up. Its end is heard after its last words.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from bench.results.messages import Hello
from bench.run.supervisor import WARM, Action, Kill, LaunchWorker, Result, Say, Stop, Supervisor
from gui.sessions.child import ChildProcess

BATCH_MS = 20  # how long words may lie before they are taken
BUDGET_S = 0.008  # how long one batch may take
SLICE_NBYTES = 1 << 14
TICK_MS = 250
QUIT_MS = 1500  # how long a worker may take to end when the window closes


class WorkerProcess(QObject):
    """Signals carry tuples, one emission a batch. `finished` once a job is settled or given up."""

    greeted = Signal(object)  # Hello of a worker that has no job yet
    said = Signal(object)  # tuple of messages, measurements not among them
    settled = Signal(object)  # tuple of measurements
    wrote_errors = Signal(bytes)  # what came on its standard error
    stopped = Signal()  # a worker ended while its job goes on (a pause, a crash)
    finished = Signal()

    def __init__(
        self,
        parent: QObject | None,
        command: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._command = list(command)
        self._clock = clock
        self._process: ChildProcess | None = None
        self._warm = False  # the process has no job yet
        self._greeting = bytearray()
        self._exit_code: int | None = None
        self._said: list[Any] = []
        self._settled: list[Any] = []
        self.supervisor: Supervisor | None = None
        self._batch = QTimer(self, singleShot=True, interval=BATCH_MS)
        self._batch.timeout.connect(self._take)
        self._ticker = QTimer(self, interval=TICK_MS)
        self._ticker.timeout.connect(self._tick)

    # ------------------------------------------------------------------------------------- for the session

    @property
    def busy(self) -> bool:
        return self.supervisor is not None

    def warm_up(self) -> None:
        """Start a worker that waits for a job, unless one runs."""
        if self._process is None:
            self._spawn()
            self._warm = True

    def run(self, supervisor: Supervisor) -> None:
        """Run a job: in the warm worker if there is one. Only while not `busy`."""
        if self.supervisor is not None:
            raise RuntimeError("a job is running")
        self.supervisor = supervisor
        self._ticker.start()
        self._do(supervisor.start(self._clock()))
        self._tell()

    def order(self, order: Callable[[Supervisor, float], Sequence[Action]]) -> None:
        """Have a run paused, gone on with or cancelled (a method of Supervisor), where one is on."""
        if self.supervisor is not None:
            self._do(order(self.supervisor, self._clock()))
            self._tell()
            self._end_if_finished()

    def quit(self) -> None:
        """End the worker, if need be by force; what it had not measured is lost. Blocks for 1.5 s at most."""
        machine, self.supervisor = self.supervisor, None
        self._ticker.stop()
        self._batch.stop()
        process, self._process = self._process, None
        if process is None:
            return
        process.end(0 if self._warm else QUIT_MS)  # a warm one has nothing to bring in order
        if machine is not None:
            self._do(machine.feed(process.read(), self._clock()))
            self._tell()

    @property
    def process_id(self) -> int:
        """Of the worker that runs; 0 where none does."""
        return self._process.id if self._process is not None else 0

    # ------------------------------------------------------------------------------------------ the inside

    def _do(self, actions: Sequence[Action]) -> None:
        for action in actions:
            match action:
                case LaunchWorker(line):
                    self._launch(line)
                case Stop():
                    if self._process is not None:
                        self._process.close_input()
                case Kill():
                    if self._process is not None:
                        self._process.kill()
                case Result(measurement):
                    self._settled.append(measurement)
                case Say(message):
                    self._said.append(message)

    def _launch(self, line: bytes) -> None:
        if self._process is None or not self._warm or self._exit_code is not None:
            self._drop()
            self._spawn()
        self._warm = False
        assert self._process is not None
        self._process.write(line)

    def _spawn(self) -> None:
        self._exit_code = None
        self._greeting.clear()
        process = ChildProcess([*self._command, WARM], self)
        process.wrote.connect(self._batch_soon)
        process.ended.connect(lambda code: self._ended(process, code))
        self._process = process
        process.start()

    def _drop(self) -> None:
        """Let go of a worker that has ended, or that nobody waits for."""
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def _batch_soon(self) -> None:
        if not self._batch.isActive():
            self._batch.start(BATCH_MS)

    def _ended(self, process: ChildProcess, code: int) -> None:
        if process is self._process:
            self._exit_code = code
            self._batch_soon()

    def _take(self) -> None:
        """One batch: read until the time is up; go on soon if there is more."""
        process = self._process
        if process is None:
            return
        end = time.perf_counter() + BUDGET_S
        more = True
        while more and time.perf_counter() < end:
            errors = process.read_errors()
            if errors:
                self.wrote_errors.emit(errors)
            data = process.read(SLICE_NBYTES)
            if data:
                self._hear(data)
            more = bool(data)
        if more:
            self._tell()
            self._batch.start(1)  # not 0: events of the user come first
            return
        if self._exit_code is not None:
            self._on_exit()
        self._tell()
        self._end_if_finished()

    def _hear(self, data: bytes) -> None:
        if self._warm:
            self._greeting += data
            head, newline, rest = self._greeting.partition(b"\n")
            if newline:
                self._greeting = rest
                self._greet(bytes(head))
        elif self.supervisor is not None:
            if self._greeting:  # the end of a line that began while it had no job
                data = bytes(self._greeting) + data
                self._greeting.clear()
            self._do(self.supervisor.feed(data, self._clock()))

    def _greet(self, line: bytes) -> None:
        try:
            message = msgspec.json.decode(line, type=Hello)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return  # a worker that babbles is told of once it has a job
        self.greeted.emit(message)

    def _on_exit(self) -> None:
        code, process = self._exit_code, self._process
        assert code is not None
        assert process is not None
        self._process, self._exit_code = None, None
        process.deleteLater()
        self._warm = False
        if self.supervisor is not None:
            self._do(self.supervisor.on_exit(code, process.tail, self._clock()))
            self.stopped.emit()

    def _tick(self) -> None:
        if self.supervisor is not None:
            self._do(self.supervisor.tick(self._clock()))
            self._tell()

    def _tell(self) -> None:
        if self._said:
            said, self._said = tuple(self._said), []
            self.said.emit(said)
        if self._settled:
            settled, self._settled = tuple(self._settled), []
            self.settled.emit(settled)

    def _end_if_finished(self) -> None:
        if self.supervisor is not None and self.supervisor.finished:
            self.supervisor = None
            self._ticker.stop()
            self.finished.emit()
