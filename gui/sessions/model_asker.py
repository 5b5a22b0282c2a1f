"""Asks a process of its own about a model's file, before anything runs; the last question is the one
answered."""

from __future__ import annotations

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from bench.questions.asked import Failed, Looking, Question, Takes, reader_command
from bench.questions.preview import Preview
from bench.results.messages import Progress
from bench.run.exits import exit_words
from gui.sessions.child import ChildProcess

WAIT_MS = 250  # after the last change: whoever types is not asked for at each letter
LIMIT_S = 60
MOST_NBYTES = 64 << 20  # of an answer
_Said = Takes | Preview | Failed | Looking | Progress


class ModelAsker(QObject):
    """`answered` carries the question and its Answer, `failed` the question and a Failed; `told` says what
    goes on meanwhile."""

    answered = Signal(object, object)
    failed = Signal(object, object)
    told = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._wanted: Question | None = None
        self._process: ChildProcess | None = None
        self._said = bytearray()
        self._answer: Takes | Preview | Failed | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(WAIT_MS)
        self._timer.timeout.connect(self._ask)

    def ask(self, question: Question) -> None:
        """Soon, and in place of any question before."""
        self._wanted = question
        self._timer.start()

    def ask_now(self, question: Question) -> None:
        """The same at once."""
        self._timer.stop()
        self._wanted = question
        self._ask()

    def quit(self) -> None:
        self._timer.stop()
        self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def _ask(self) -> None:
        self._end()
        question = self._wanted
        assert question is not None
        process = ChildProcess([*reader_command(), str(LIMIT_S)], self)
        self._said.clear()
        self._answer = None
        process.wrote.connect(lambda: self._hear(process))
        process.ended.connect(lambda code: self._on_ended(process, question, code))
        self._process = process
        process.start()
        process.write(msgspec.json.encode(question) + b"\n")

    def _hear(self, process: ChildProcess) -> None:
        """What was said so far, in whole lines."""
        process.read_errors()
        self._said += process.read()
        *lines, rest = self._said.split(b"\n")
        self._said = bytearray(rest)
        if len(rest) > MOST_NBYTES:
            self._answer = Failed(kind="ModelError", text="reading it gave an answer that is too long")
            process.kill()
        for line in lines:
            try:
                said = msgspec.json.decode(line, type=_Said)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            match said:
                case Progress(text=text):
                    self.told.emit(text)
                case Looking():
                    pass
                case Failed(kind=kind, text=text):
                    self._answer = Failed(
                        kind=kind, text=text or "reading it takes more memory than it may have"
                    )
                case _:
                    self._answer = said

    def _on_ended(self, process: ChildProcess, question: Question, code: int) -> None:
        if process is not self._process:
            return
        self._hear(process)
        self._process = None
        process.end()
        answer, self._answer = self._answer, None
        match answer:
            case None:
                words = f"reading it failed: the process {exit_words(code)}"
                self.failed.emit(question, Failed(kind="ModelError", text=words))
            case Failed():
                self.failed.emit(question, answer)
            case _:
                self.answered.emit(question, answer)
