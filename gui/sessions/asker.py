"""Questions to a process of its own: of several asked one after the other the last is answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from bench.results.messages import Done
from gui.sessions.child import ChildProcess
from kernels.processes import exit_words, last_line

MOST_NBYTES = 64 << 20  # of an answer


class Asker(QObject):
    """`answered` carries a question and its answer; `failed` a question and why it has none, in words that go
    on after a colon."""

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
        """command: of a process that reads a question a line and writes messages, one a line. answers: the
        types of those that answer one. wait_ms: after the last question, before it is asked. limit_ms: that
        an answer may take (0: however long).

        idle_ms: after its last answer, until the process is ended; a question that comes while another is
        answered waits. With 0 each question has a process of its own, which ends with the answer, or with
        the next question.
        """
        super().__init__(parent)
        self._command = list(command)
        self._types = answers | Done
        self._keeps = idle_ms > 0
        self._process: ChildProcess | None = None
        self._output = bytearray()
        self._asked: Any = None  # the question whose answer is awaited
        self.waiting: Any = None  # the question that is asked next
        self._wait = QTimer(self, singleShot=True, interval=wait_ms)
        self._wait.timeout.connect(self._send)
        self._limit = QTimer(self, singleShot=True, interval=limit_ms)
        self._limit.timeout.connect(self._on_limit)
        self._idle = QTimer(self, singleShot=True, interval=idle_ms)
        self._idle.timeout.connect(self._end)

    @property
    def busy(self) -> bool:
        """Whether an answer is awaited."""
        return self._asked is not None or self.waiting is not None

    def ask(self, question: Any, now: bool = False) -> None:
        """Soon, or `now`, and in place of any other question that waits."""
        self.waiting = question
        if self._keeps and self._asked is not None:
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
        self._asked, self.waiting = self.waiting, None
        process = self._process or self._started()
        if self._limit.interval():
            self._limit.start()
        process.write(msgspec.json.encode(self._asked) + b"\n")

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
                continue  # it tells how far it is
            if isinstance(message, Done):
                self._fail(message.reason)
            elif self._asked is not None:
                self._answer(message)

    def _answer(self, answer: Any) -> None:
        question, self._asked = self._asked, None
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
            return  # its last words were the answer
        last = last_line(process.tail)
        reason = f"the process {exit_words(code)}" + (f": {last}" if last else "")
        self._fail(f"no process could be started: {process.refused}" if process.refused else reason)

    def _on_limit(self) -> None:
        self._fail(f"it took more than {self._limit.interval() // 1000} s and was given up")

    def _fail(self, reason: str) -> None:
        """The next question gets a process of its own."""
        question, self.waiting = self._asked, None
        self._end()
        if question is not None:
            self.failed.emit(question, reason)

    def _end(self) -> None:
        """End the process; it has nothing to bring in order."""
        self._limit.stop()
        self._idle.stop()
        self._asked = None
        process, self._process = self._process, None
        if process is not None:
            process.end()
