"""Asks a process of its own what a rung is compiled to, which ends with the answer; the last rung asked for
is the one answered."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from bench.ladder.questions import AssemblyAnswer, AssemblyQuestion, assembly_command
from bench.results.messages import Done
from bench.run.exits import exit_words, last_line
from gui.sessions.child import ChildProcess

WAIT_MS = 150  # whoever steps through rungs does not have each of them compiled
LIMIT_MS = 120_000
_Said = AssemblyAnswer | Done


class AssemblyAsker(QObject):
    """`answered` carries the AssemblyQuestion and its AssemblyAnswer, of which `error` says what went
    wrong."""

    answered = Signal(object, object)

    def __init__(self, parent: QObject | None = None, command: Sequence[str] | None = None) -> None:
        super().__init__(parent)
        self._command = list(command) if command else assembly_command()
        self._wanted: AssemblyQuestion | None = None
        self._process: ChildProcess | None = None
        self._wait = QTimer(self, singleShot=True, interval=WAIT_MS)
        self._wait.timeout.connect(self._ask)
        self._limit = QTimer(self, singleShot=True, interval=LIMIT_MS)
        self._limit.timeout.connect(self._on_limit)

    @property
    def busy(self) -> bool:
        return self._wanted is not None

    def ask(self, question: AssemblyQuestion) -> None:
        """What a rung is compiled to; soon, and in place of any question before."""
        if question != self._wanted:
            self._end()
            self._wanted = question
            self._wait.start()

    def quit(self) -> None:
        self._wait.stop()
        self._wanted = None
        self._end()

    def _ask(self) -> None:
        question = self._wanted
        if question is None:
            return
        process = ChildProcess(self._command, self)
        said = bytearray()
        process.wrote.connect(lambda: self._on_output(process, said))
        process.ended.connect(lambda code: self._on_ended(process, question, said, code))
        self._process = process
        self._limit.start()
        process.start()
        process.write(msgspec.json.encode(question) + b"\n")

    def _on_output(self, process: ChildProcess, said: bytearray) -> None:
        process.read_errors()
        said.extend(process.read())

    def _on_ended(
        self, process: ChildProcess, question: AssemblyQuestion, said: bytearray, code: int
    ) -> None:
        if process is not self._process:
            return
        self._on_output(process, said)
        reason = process.refused or f"the process that compiles {exit_words(code)}"
        if not process.refused and (last := last_line(process.tail)):
            reason += f": {last}"
        self._end()
        self._wanted = None
        self.answered.emit(question, _answer(bytes(said), question, reason))

    def _on_limit(self) -> None:
        question, self._wanted = self._wanted, None
        self._end()
        if question is not None:
            reason = f"compiling took more than {LIMIT_MS // 1000} s and was given up"
            self.answered.emit(question, AssemblyAnswer(rung=question.rung, error=reason))

    def _end(self) -> None:
        self._limit.stop()
        process, self._process = self._process, None
        if process is not None:
            process.end()


def _answer(said: bytes, question: AssemblyQuestion, otherwise: str) -> AssemblyAnswer:
    for line in said.splitlines():
        try:
            found = msgspec.json.decode(line, type=_Said)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if isinstance(found, AssemblyAnswer):
            return found
        otherwise = found.reason or otherwise
    return AssemblyAnswer(rung=question.rung, error=otherwise)
