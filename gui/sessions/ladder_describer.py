"""Asks a worker that times nothing what ladders there are; the last question asked is the one answered."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from bench.ladder.kind import KIND as LADDER
from bench.ladder.questions import DESCRIBE, LadderAnswer, LadderQuestion
from bench.results.messages import Done
from bench.run.client import worker_command
from bench.run.exits import exit_words, last_line
from gui.sessions.child import ChildProcess

_Said = LadderAnswer | Done
IDLE_MS = 15_000  # after its last answer, until the process is ended


class LadderDescriber(QObject):
    """`answered` carries the LadderAnswer to the last question; `failed` why there will be none."""

    answered = Signal(object)
    failed = Signal(str)

    def __init__(self, parent: QObject | None = None, command: Sequence[str] | None = None) -> None:
        super().__init__(parent)
        self._command = list(command) if command else [*worker_command(LADDER.worker), DESCRIBE]
        self._process: ChildProcess | None = None
        self._buffer = bytearray()
        self._number = 0
        self._asked: LadderQuestion | None = None  # of whom the worker owes an answer
        self._next: LadderQuestion | None = None
        # Between questions its models' weights stay in memory, which is not worth it for long.
        self._idle = QTimer(self, singleShot=True, interval=IDLE_MS)
        self._idle.timeout.connect(self._rest)

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
        self._idle.stop()
        process, self._process = self._process, None
        self._asked = self._next = None
        if process is not None:
            process.end()  # it has nothing to bring in order; a template is written whole or not at all

    # ------------------------------------------------------------------------------------------ the inside

    def _send(self, question: LadderQuestion) -> None:
        self._asked = question
        self._idle.stop()
        if self._process is None:
            self._spawn()
        assert self._process is not None
        self._process.write(msgspec.json.encode(question) + b"\n")

    def _rest(self) -> None:
        """End the process; the next question starts another."""
        process = self._process
        if self._asked is None and process is not None:
            self._process = None
            process.end()

    def _spawn(self) -> None:
        self._buffer.clear()
        process = ChildProcess(self._command, self)
        process.wrote.connect(self._on_output)
        process.ended.connect(lambda code: self._on_ended(process, code))
        self._process = process
        process.start()

    def _on_output(self) -> None:
        if self._process is None:
            return
        self._process.read_errors()
        self._buffer += self._process.read()
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
            else:
                self._idle.start()
            # An answer that made a template is heard in any case: the file is there.
            if waiting is None or said.created:
                self.answered.emit(said)

    def _on_ended(self, process: ChildProcess, code: int) -> None:
        if process is not self._process:
            return
        if process.refused:
            self._give_up(f"no worker could be started: {process.refused}")
            return
        self._on_output()
        last = last_line(process.tail)
        self._give_up(f"the worker {exit_words(code)}" + (f": {last}" if last else ""))

    def _give_up(self, reason: str) -> None:
        """The next question gets a process of its own."""
        process, self._process = self._process, None
        asked, self._asked, self._next = self._asked, None, None
        if process is not None:
            process.end()
        if asked is not None:
            self.failed.emit(f"The ladder could not be planned: {reason}.")
