"""Asks a worker that times nothing what ladders there are; the last question asked is the one answered."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Signal

from bench.ladder.kind import KIND as LADDER
from bench.ladder.questions import DESCRIBE, LadderAnswer, LadderQuestion
from bench.results.messages import Done
from bench.run.client import worker_command, worker_environment
from bench.run.exits import exit_words, last_line
from gui.sessions.worker_process import own_session

_Said = LadderAnswer | Done
END_MS = 1000
TAIL_NBYTES = 4000


class LadderDescriber(QObject):
    """`answered` carries the LadderAnswer to the last question; `failed` why there will be none."""

    answered = Signal(object)
    failed = Signal(str)

    def __init__(self, parent: QObject | None = None, command: Sequence[str] | None = None) -> None:
        super().__init__(parent)
        self._command = list(command) if command else [*worker_command(LADDER.worker[:1]), DESCRIBE]
        self._process: QProcess | None = None
        self._buffer = bytearray()
        self._errors = b""
        self._number = 0
        self._asked: LadderQuestion | None = None  # of whom the worker owes an answer
        self._next: LadderQuestion | None = None

    @property
    def busy(self) -> bool:
        return self._asked is not None

    def ask(self, question: LadderQuestion) -> None:
        """Ask, now or once the question before it is answered; of several that wait the last is asked, and a
        template that one of them wants is not forgotten."""
        self._number += 1
        question = msgspec.structs.replace(question, number=self._number)
        if self._asked is None:
            self._send(question)
            return
        if self._next is not None and self._next.new_in and not question.new_in:
            question = msgspec.structs.replace(question, new_in=self._next.new_in)
        self._next = question

    def quit(self) -> None:
        process, self._process = self._process, None
        self._asked = self._next = None
        if process is not None:
            process.blockSignals(True)
            process.kill()  # it has nothing to bring in order; a template is written whole or not at all
            process.waitForFinished(END_MS)

    # ------------------------------------------------------------------------------------------ the inside

    def _send(self, question: LadderQuestion) -> None:
        self._asked = question
        if self._process is None:
            self._spawn()
        assert self._process is not None
        self._process.write(msgspec.json.encode(question) + b"\n")

    def _spawn(self) -> None:
        self._buffer.clear()
        self._errors = b""
        process = QProcess(self)
        environment = QProcessEnvironment()
        for name, value in worker_environment().items():
            environment.insert(name, value)
        process.setProcessEnvironment(environment)
        own_session(process)
        process.readyReadStandardOutput.connect(self._on_output)
        process.readyReadStandardError.connect(self._on_errors)
        process.finished.connect(lambda code, status: self._on_finished(process, code, status))
        process.errorOccurred.connect(lambda error: self._on_error(process, error))
        self._process = process
        process.start(self._command[0], self._command[1:])

    def _on_output(self) -> None:
        if self._process is None:
            return
        self._buffer += bytes(self._process.readAllStandardOutput().data())
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = bytearray(rest)
        for line in lines:
            if line.strip():
                self._hear(bytes(line))

    def _hear(self, line: bytes) -> None:
        try:
            said = msgspec.json.decode(line, type=_Said)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        if isinstance(said, Done):
            self._give_up(said.reason)
        elif self._asked is not None and said.number == self._asked.number:
            waiting, self._asked, self._next = self._next, None, None
            if waiting is not None:
                self._send(waiting)
            # An answer that made a template is heard in any case: the file is there.
            if waiting is None or said.created:
                self.answered.emit(said)

    def _on_errors(self) -> None:
        if self._process is not None:
            self._errors = (self._errors + bytes(self._process.readAllStandardError().data()))[-TAIL_NBYTES:]

    def _on_finished(self, process: QProcess, code: int, status: QProcess.ExitStatus) -> None:
        if process is not self._process:
            return
        self._on_output()
        self._on_errors()
        code = -code if status == QProcess.ExitStatus.CrashExit else code
        last = last_line(self._errors.decode("utf-8", "replace"))
        self._give_up(f"the worker {exit_words(code)}" + (f": {last}" if last else ""))

    def _on_error(self, process: QProcess, error: QProcess.ProcessError) -> None:
        if process is self._process and error == QProcess.ProcessError.FailedToStart:
            self._give_up(f"no worker could be started: {process.errorString()}")

    def _give_up(self, reason: str) -> None:
        """The next question gets a process of its own."""
        process, self._process = self._process, None
        asked, self._asked, self._next = self._asked, None, None
        if process is not None:
            process.blockSignals(True)
            process.kill()
            process.waitForFinished(END_MS)
            process.deleteLater()
        if asked is not None:
            self.failed.emit(f"The ladder could not be planned: {reason}.")
