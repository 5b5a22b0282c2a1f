"""The worker as a QProcess, driven by the same supervisor as the headless client; fed in small batches.

A worker is started ahead of need ("warm"): it loads its libraries, tells of its machine and waits for a job,
so that the first job starts at once. Everything it writes is taken on a timer, a slice of bytes at a time, so
that a worker that floods its output never holds the window up. Its end is heard after its last words.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

import msgspec
from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, QTimer, Signal

from bench.comparison.kind import KIND as COMPARISON
from bench.results.messages import Hello, WorkerMessage
from bench.results.records import Measurement
from bench.run.client import end_worker, worker_command, worker_environment
from bench.run.supervisor import WARM, Action, Kill, Launch, Result, Say, Stop, Supervisor

BATCH_MS = 20  # how long words may lie before they are taken
BUDGET_S = 0.008  # how long one batch may take
SLICE_NBYTES = 1 << 14
TICK_MS = 250
TAIL_NBYTES = 4000
QUIT_MS = 1500  # how long a worker may take to end when the window closes


class WorkerProcess(QObject):
    """Signals carry tuples, one emission a batch. `finished` once a job is settled or given up."""

    greeted = Signal(object)  # Hello of a worker that has no job yet
    said = Signal(object)  # tuple[WorkerMessage, ...], measurements not among them
    settled = Signal(object)  # tuple[Measurement, ...]
    wrote_errors = Signal(bytes)  # what came on its standard error
    stopped = Signal()  # a worker ended while its job goes on (a pause, a crash)
    finished = Signal()

    def __init__(
        self,
        parent: QObject | None = None,
        command: Sequence[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._command = list(command) if command else worker_command(COMPARISON.worker)
        self._clock = clock
        self._process: QProcess | None = None
        self._warm = False  # the process has no job yet
        self._greeting = bytearray()
        self._exit_code: int | None = None
        self._tail: deque[bytes] = deque()
        self._said: list[WorkerMessage] = []
        self._settled: list[Measurement] = []
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

    def pause(self) -> None:
        self._command_supervisor(lambda machine, now: machine.pause(now))

    def resume(self) -> None:
        self._command_supervisor(lambda machine, now: machine.resume(now))

    def cancel(self) -> None:
        self._command_supervisor(lambda machine, now: machine.cancel(now))

    def quit(self) -> None:
        """End the worker, if need be by force; what it had not measured is lost. Blocks for 1.5 s at most."""
        machine, self.supervisor = self.supervisor, None
        self._ticker.stop()
        self._batch.stop()
        process, self._process = self._process, None
        if process is None:
            return
        process.blockSignals(True)
        process.closeWriteChannel()
        if self._warm:  # it has nothing to bring in order
            _kill(process)
        if not process.waitForFinished(QUIT_MS):
            _kill(process)
            process.waitForFinished(QUIT_MS)
        if machine is not None:
            self._do(machine.feed(bytes(process.readAllStandardOutput().data()), self._clock()))
            self._tell()

    @property
    def process_id(self) -> int:
        """Of the worker that runs; 0 where none does."""
        return self._process.processId() if self._process is not None else 0

    # ------------------------------------------------------------------------------------------ the inside

    def _command_supervisor(self, order: Callable[[Supervisor, float], Sequence[Action]]) -> None:
        if self.supervisor is not None:
            self._do(order(self.supervisor, self._clock()))
            self._tell()
            self._end_if_finished()

    def _do(self, actions: Sequence[Action]) -> None:
        for action in actions:
            match action:
                case Launch(line):
                    self._launch(line)
                case Stop():
                    if self._process is not None:
                        self._process.closeWriteChannel()
                case Kill():
                    if self._process is not None:
                        _kill(self._process)
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
        self._tail.clear()
        process = QProcess(self)
        environment = QProcessEnvironment()
        for name, value in worker_environment().items():
            environment.insert(name, value)
        process.setProcessEnvironment(environment)
        own_session(process)
        process.readyReadStandardOutput.connect(self._batch_soon)
        process.readyReadStandardError.connect(self._batch_soon)
        process.finished.connect(lambda code, status: self._ended(process, code, status))
        process.errorOccurred.connect(lambda error: self._failed(process, error))
        self._process = process
        process.start(self._command[0], [*self._command[1:], WARM])

    def _drop(self) -> None:
        """Let go of a worker that has ended, or that nobody waits for."""
        process, self._process = self._process, None
        if process is not None:
            process.blockSignals(True)
            process.kill()
            process.waitForFinished(QUIT_MS)
            process.deleteLater()

    def _batch_soon(self) -> None:
        if not self._batch.isActive():
            self._batch.start(BATCH_MS)

    def _ended(self, process: QProcess, code: int, status: QProcess.ExitStatus) -> None:
        if process is self._process:
            # Qt gives the signal's number as the code of a process that a signal ended.
            self._exit_code = -code if status == QProcess.ExitStatus.CrashExit else code
            self._batch_soon()

    def _failed(self, process: QProcess, error: QProcess.ProcessError) -> None:
        if process is self._process and error == QProcess.ProcessError.FailedToStart:
            self._keep_tail(process.errorString().encode())
            self._exit_code = 127
            self._batch_soon()

    def _take(self) -> None:
        """One batch: read until the time is up; go on soon if there is more."""
        process = self._process
        if process is None:
            return
        end = time.perf_counter() + BUDGET_S
        more = True
        while more and time.perf_counter() < end:
            errors = bytes(process.readAllStandardError().data())
            if errors:
                self._keep_tail(errors)
                self.wrote_errors.emit(errors)
            process.setReadChannel(QProcess.ProcessChannel.StandardOutput)
            data = bytes(process.read(SLICE_NBYTES).data())
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
            message = msgspec.json.decode(line, type=WorkerMessage)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return  # a worker that babbles is told of once it has a job
        if isinstance(message, Hello):
            self.greeted.emit(message)

    def _on_exit(self) -> None:
        code, process = self._exit_code, self._process
        assert code is not None
        self._process, self._exit_code = None, None
        if process is not None:
            process.deleteLater()
        self._warm = False
        if self.supervisor is not None:
            text = b"".join(self._tail).decode("utf-8", "replace")
            self._do(self.supervisor.on_exit(code, text, self._clock()))
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

    def _keep_tail(self, data: bytes) -> None:
        self._tail.append(data[-TAIL_NBYTES:])
        while len(self._tail) > 1 and sum(map(len, self._tail)) - len(self._tail[0]) >= TAIL_NBYTES:
            self._tail.popleft()


def own_session(process: QProcess) -> None:
    """Ctrl-C in the terminal reaches the window alone, which ends the worker in order."""
    if hasattr(process, "setUnixProcessParameters"):
        parameters = QProcess.UnixProcessParameters()
        parameters.flags = QProcess.UnixProcessFlag.CreateNewSession
        process.setUnixProcessParameters(parameters)


def _kill(process: QProcess) -> None:
    """The worker, and what kernels started in it."""
    if process.processId():
        end_worker(process.processId(), group=False)
    process.kill()
