"""The processes of the window: one child process; one that answers questions; the worker of a run;
exports."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Signal

from bench.results.messages import Done, Hello
from bench.run.client import end_worker, worker_environment
from bench.run.supervisor import WARM, Action, Kill, LaunchWorker, Result, Say, Stop, Supervisor
from gui.base.background import timer
from kernels.processes import exit_words, last_line

TAIL_NBYTES = 4000
NOT_STARTED = 127  # as a shell reports a command that there is not
END_MS = 1500  # how long one that is killed may take
LEAVE_MS = 10_000  # how long one that goes away by itself may take


class ChildProcess(QObject):
    """A child process. `wrote`: there is something to read. `ended` carries its exit status (negative: the
    signal that ended it); all it wrote can still be read then. refused: why it could not start, "" if
    it did."""

    wrote = Signal()
    ended = Signal(int)

    def __init__(self, command: Sequence[str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.refused = ""
        self._command = list(command)
        self._tail = b""
        self._process = process = QProcess(self)
        environment = QProcessEnvironment()
        for name, value in worker_environment().items():
            environment.insert(name, value)
        process.setProcessEnvironment(environment)
        # A session of its own: Ctrl-C in the terminal reaches only the window, which then ends the process.
        if hasattr(process, "setUnixProcessParameters"):
            parameters = QProcess.UnixProcessParameters()
            parameters.flags = QProcess.UnixProcessFlag.CreateNewSession
            process.setUnixProcessParameters(parameters)
        process.readyReadStandardOutput.connect(self.wrote)
        process.readyReadStandardError.connect(self.wrote)
        process.finished.connect(self._on_finished)
        process.errorOccurred.connect(self._on_error)

    def start(self) -> None:
        self._process.start(self._command[0], self._command[1:])

    @property
    def id(self) -> int:
        """The process id, 0 if it does not run."""
        return self._process.processId()

    @property
    def tail(self) -> str:
        """The end of what was read from its standard error."""
        return self._tail.decode("utf-8", "replace")

    def read(self, most: int | None = None) -> bytes:
        """What it has written on standard output, at most `most` bytes."""
        process = self._process
        process.setReadChannel(QProcess.ProcessChannel.StandardOutput)
        return bytes((process.readAll() if most is None else process.read(most)).data())

    def read_errors(self) -> bytes:
        """What it has written on standard error."""
        data = bytes(self._process.readAllStandardError().data())
        self._tail = (self._tail + data)[-TAIL_NBYTES:]
        return data

    def write(self, data: bytes) -> None:
        self._process.write(data)

    def close_input(self) -> None:
        self._process.closeWriteChannel()

    def kill(self) -> None:
        """Kill the process and all that it started. `ended` is emitted."""
        if self.id:
            end_worker(self.id, group=False)
        self._process.kill()

    def leave(self) -> None:
        """Have the process go away (SIGTERM), without any further signal of this one."""
        self.blockSignals(True)
        self._process.blockSignals(True)
        self._process.terminate()
        # Killed it would have the worker ended elsewhere, as if that had been wanted.
        if not self._process.waitForFinished(LEAVE_MS):
            self.kill()
        self.deleteLater()

    def end(self, grace_ms: int = 0) -> None:
        """End the process without any further signal. Its input is closed; it has `grace_ms` to end by
        itself."""
        self.blockSignals(True)
        process = self._process
        process.blockSignals(True)
        process.closeWriteChannel()
        if not (grace_ms and process.waitForFinished(grace_ms)):
            self.kill()
            process.waitForFinished(END_MS)
        self.deleteLater()

    def _on_finished(self, code: int, status: QProcess.ExitStatus) -> None:
        # Qt gives the signal's number as the code of a process that a signal ended.
        self.ended.emit(-code if status == QProcess.ExitStatus.CrashExit else code)

    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self.refused = self._process.errorString()
            self._tail = self.refused.encode()
            self.ended.emit(NOT_STARTED)


MOST_NBYTES = 64 << 20  # of an answer


class Asker(QObject):
    """Asks a process questions; if several are asked, only the last is answered. `answered` carries the
    question and its answer, `failed` the question and why there is none, in words that follow a colon."""

    answered = Signal(object, object)
    failed = Signal(object, str)

    def __init__(
        self,
        command: Sequence[str],
        answers: Any,
        parent: QObject | None = None,
        wait_ms: int = 0,
        limit_ms: int = 0,
        idle_ms: int = 0,
    ) -> None:
        """command: of a process that reads one question a line and writes one message a line. answers: the
        types of the answers. wait_ms: how long to wait after the last question before asking it.
        limit_ms: how long an answer may take, 0 for any time.

        idle_ms: how long after an answer the process is kept; a question that comes while another is
        answered waits. With 0 each question gets a process of its own, which ends with the answer or
        with the next question.
        """
        super().__init__(parent)
        self._command = list(command)
        self._types = answers | Done
        self._keeps = idle_ms > 0
        self._process: ChildProcess | None = None
        self._output = bytearray()
        self._question: Any = None  # the question whose answer is awaited
        self.waiting: Any = None  # the question that is asked next
        self._wait = timer(self, wait_ms, self._send)
        self._limit = timer(self, limit_ms, self._on_limit)
        self._idle = timer(self, idle_ms, self._end)

    @property
    def busy(self) -> bool:
        """Whether an answer is awaited."""
        return self._question is not None or self.waiting is not None

    def ask(self, question: Any, now: bool = False) -> None:
        """Ask a question, after the waiting time or `now`. It replaces a question that waits."""
        self.waiting = question
        if self._keeps and self._question is not None:
            return
        if not self._keeps:
            self._end()
        if now or not self._wait.interval():
            self._send()
        else:
            self._wait.start()

    def quit(self) -> None:
        self._wait.stop()
        self.waiting = None
        self._end()

    # ------------------------------------------------------------------------------------------ the inside

    def _send(self) -> None:
        self._wait.stop()
        self._idle.stop()
        self._question, self.waiting = self.waiting, None
        process = self._process or self._started()
        if self._limit.interval():
            self._limit.start()
        process.write(msgspec.json.encode(self._question) + b"\n")

    def _started(self) -> ChildProcess:
        self._output.clear()
        process = self._process = ChildProcess(self._command, self)
        process.wrote.connect(self._on_output)
        process.ended.connect(self._on_ended)
        process.start()
        return process

    def _on_output(self) -> None:
        process = self._process
        if process is None:
            return
        process.read_errors()
        self._output += process.read()
        *lines, rest = self._output.split(b"\n")
        self._output = bytearray(rest)
        if len(rest) > MOST_NBYTES:
            self._fail("the answer is too long")
        for line in lines:
            try:
                message = msgspec.json.decode(line, type=self._types)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue  # a message about progress
            if isinstance(message, Done):
                self._fail(message.reason)
            elif self._question is not None:
                self._answer(message)

    def _answer(self, answer: Any) -> None:
        question, self._question = self._question, None
        self._limit.stop()
        if not self._keeps:
            self._end()
        elif self.waiting is not None:
            self._send()
        else:
            self._idle.start()
        self.answered.emit(question, answer)

    def _on_ended(self, code: int) -> None:
        self._on_output()
        process = self._process
        if process is None:
            return  # its last output was the answer
        last = last_line(process.tail)
        reason = f"the process {exit_words(code)}" + (f": {last}" if last else "")
        self._fail(f"no process could be started: {process.refused}" if process.refused else reason)

    def _on_limit(self) -> None:
        self._fail(f"it took more than {self._limit.interval() // 1000} s and was given up")

    def _fail(self, reason: str) -> None:
        """There is no answer. The next question gets a new process."""
        question, self.waiting = self._question, None
        self._end()
        if question is not None:
            self.failed.emit(question, reason)

    def _end(self) -> None:
        """End the process."""
        self._limit.stop()
        self._idle.stop()
        self._question = None
        process, self._process = self._process, None
        if process is not None:
            process.end()


BATCH_MS = 20  # how long output may wait before it is read
BUDGET_S = 0.008  # how long one batch may take
SLICE_NBYTES = 1 << 14
TICK_MS = 250
QUIT_MS = 1500  # how long a worker may take to end when the window closes


class WorkerProcess(QObject):
    """The worker of a run, driven by the same supervisor as on the command line.

    A worker is started before it is needed ("warm"): it loads its libraries, says what the machine can
    do, and waits for a job. What it writes is read by a timer, a slice at a time, so that a flood of
    output never blocks the window. Its end is handled after its last output. Signals carry tuples;
    `finished` is emitted when the job is done or given up.
    """

    greeted = Signal(object)  # Hello of a worker that has no job yet
    messages = Signal(object)  # tuple of messages, measurements not among them
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
        self._unsent: list[Any] = []
        self._settled: list[Any] = []
        self.supervisor: Supervisor | None = None
        self._batch = timer(self, BATCH_MS, self._take)
        self._ticker = timer(self, TICK_MS, self._tick, repeats=True)

    # ------------------------------------------------------------------------------------- for the session

    @property
    def busy(self) -> bool:
        return self.supervisor is not None

    def warm_up(self) -> None:
        """Start a worker that waits for a job, unless one runs."""
        if self._process is None:
            self._spawn()
            self._warm = True

    def use(self, command: Sequence[str]) -> None:
        """Start workers by this command from now on. One that waits for a job is ended. Only while not
        `busy`."""
        self._command = list(command)
        self._drop()
        self._warm = False

    def run(self, supervisor: Supervisor) -> None:
        """Run a job, in the warm worker if there is one. Only while not `busy`."""
        if self.supervisor is not None:
            raise RuntimeError("a job is running")
        self.supervisor = supervisor
        self._ticker.start()
        self._do(supervisor.start(self._clock()))
        self._tell()

    def order(self, order: Callable[[Supervisor, float], Sequence[Action]]) -> None:
        """Call a method of Supervisor (pause, resume, cancel), if a run is active."""
        if self.supervisor is not None:
            self._do(order(self.supervisor, self._clock()))
            self._tell()
            self._end_if_finished()

    def quit(self, leave: bool = False) -> None:
        """End the worker, by force if needed. What it has not measured is lost. Takes 1.5 s at most. leave:
        only the line to it ends; a worker elsewhere goes on. What has come and was not read yet is told."""
        machine, self.supervisor = self.supervisor, None
        self._ticker.stop()
        self._batch.stop()
        process, self._process = self._process, None
        if process is None:
            return
        if leave and not self._warm:
            process.leave()
        else:
            process.end(0 if self._warm else QUIT_MS)  # a warm one has nothing to finish
        if machine is not None:
            self._do(machine.feed(process.read(), self._clock()))
            self._tell()

    @property
    def process_id(self) -> int:
        """The worker's process id, 0 if none runs."""
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
                    self._unsent.append(message)

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
        """Forget a worker that has ended or that nobody needs."""
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
        """Read output until the time is up; continue soon if there is more."""
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
            if self._greeting:  # the rest of a line that began before the job
                data = bytes(self._greeting) + data
                self._greeting.clear()
            self._do(self.supervisor.feed(data, self._clock()))

    def _greet(self, line: bytes) -> None:
        try:
            message = msgspec.json.decode(line, type=Hello)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return  # a worker with wrong output is reported when it has a job
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
        if self._unsent:
            messages, self._unsent = tuple(self._unsent), []
            self.messages.emit(messages)
        if self._settled:
            settled, self._settled = tuple(self._settled), []
            self.settled.emit(settled)

    def _end_if_finished(self) -> None:
        if self.supervisor is not None and self.supervisor.finished:
            self.supervisor = None
            self._ticker.stop()
            self.finished.emit()


MAIN = Path(__file__).parents[2] / "main.py"


@dataclass(frozen=True)
class Order:
    """An export to make. arguments: of main.py; what: its name in a sentence ("the chart …"); where: the
    file or folder that is made; then: called when it is there (None: it is shown as a result);
    expected: about how many files (0: unknown)."""

    arguments: tuple[str, ...]
    what: str
    where: Path
    then: Callable[[], None] | None = None
    expected: int = 0


@dataclass(frozen=True)
class ExportStanding:
    """The export that is being made, how many files it has written, and how many exports wait."""

    order: Order
    files: int = 0
    waiting: int = 0


class Exporter(QObject):
    """Makes exports one after the other, each by a child process of main.py. A run that is being measured
    is exported as far as it is on the disk. `stands` carries an ExportStanding, `exported` an Order and
    its files, `failed` and `cancelled` a sentence; `idle`: nothing is left to do."""

    stands = Signal(object)
    exported = Signal(object, object)
    failed = Signal(str)
    cancelled = Signal(str)
    idle = Signal()

    def __init__(self, parent: QObject | None = None, command: Sequence[str] | None = None) -> None:
        super().__init__(parent)
        self._command = list(command) if command else [sys.executable, str(MAIN)]
        self._orders: deque[Order] = deque()
        self._order: Order | None = None
        self._process: ChildProcess | None = None
        self._output = b""

    @property
    def busy(self) -> bool:
        return self._order is not None

    def start(self, order: Order) -> None:
        self._orders.append(order)
        if self._order is None:
            self._next()
        else:
            self._tell()

    def cancel(self) -> None:
        """End the export that is being made, and forget those that wait. Complete files stay."""
        order, files = self._order, self._output.count(b"\n")
        if order is None:
            return
        self.quit()
        so_far = f"; {files} file{'s' if files != 1 else ''} made so far" if files else ""
        self.cancelled.emit(f"Cancelled the export of {order.what}{so_far}")
        self.idle.emit()

    def quit(self) -> None:
        """End everything. Files are complete or not there."""
        self._orders.clear()
        process, self._process, self._order = self._process, None, None
        if process is not None:
            process.end()

    # ------------------------------------------------------------------------------------------ the inside

    def _next(self) -> None:
        self._order = self._orders.popleft()
        self._output = b""
        process = self._process = ChildProcess([*self._command, *self._order.arguments], self)
        process.wrote.connect(self._on_output)
        process.ended.connect(self._on_ended)
        process.start()
        process.close_input()
        self._tell()

    def _tell(self) -> None:
        if self._order is not None:
            self.stands.emit(ExportStanding(self._order, self._output.count(b"\n"), len(self._orders)))

    def _on_output(self) -> None:
        if self._process is not None:
            self._process.read_errors()
            self._output += self._process.read()
            self._tell()

    def _on_ended(self, code: int) -> None:
        self._on_output()
        process, order = self._process, self._order
        if process is None or order is None:
            return
        self._process = self._order = None
        process.deleteLater()
        reason = process.refused
        if not reason and code:
            lines = process.tail.strip().splitlines() or [f"its process ended with exit code {code}"]
            reason = lines[-1] if code > 0 else "the process that drew it was killed"
        if reason:
            self.failed.emit(f"Could not export {order.what}: {reason}.".replace("..", "."))
        else:
            self.exported.emit(
                order, [Path(line) for line in self._output.decode("utf-8", "replace").splitlines()]
            )
            if order.then is not None:
                order.then()
        if self._order is None and self._orders:
            self._next()
        elif self._order is None:
            self.idle.emit()
