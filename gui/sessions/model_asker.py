"""Asks a process of its own what a model's file takes, before anything runs; the last question is the one
answered."""

from __future__ import annotations

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from bench.questions.asked import Failed, Looking, Takes, WhichTakes, reader_command
from bench.results.messages import Progress
from bench.results.records import Job
from bench.run.exits import exit_words
from gui.sessions.child import ChildProcess

WAIT_MS = 250  # after the last change: whoever types is not asked for at each letter
LIMIT_S = 60
_Said = Takes | Failed | Looking | Progress


class ModelAsker(QObject):
    """`answered` carries a Takes, of which `refused` says what went wrong where nothing could be told."""

    answered = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._wanted: Job | None = None
        self._process: ChildProcess | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(WAIT_MS)
        self._timer.timeout.connect(self._ask)

    def ask(self, job: Job) -> None:
        """What the first model of `job` takes; soon, and in place of any question before."""
        self._wanted = job
        self._timer.start()

    def quit(self) -> None:
        self._timer.stop()
        self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def _ask(self) -> None:
        self._end()
        job = self._wanted
        assert job is not None
        process = ChildProcess([*reader_command(), str(LIMIT_S)], self)
        said = bytearray()
        process.wrote.connect(lambda: said.extend(process.read()))
        process.ended.connect(lambda code: self._on_ended(process, job, said, code))
        self._process = process
        process.start()
        process.write(msgspec.json.encode(WhichTakes(job=job)) + b"\n")

    def _on_ended(self, process: ChildProcess, job: Job, said: bytearray, code: int) -> None:
        if process is not self._process:
            return
        said.extend(process.read())
        self._process = None
        process.end()
        self.answered.emit(_answer(bytes(said), job, f"reading it failed: the process {exit_words(code)}"))


def _answer(said: bytes, job: Job, otherwise: str) -> Takes:
    for line in said.splitlines():
        try:
            match msgspec.json.decode(line, type=_Said):
                case Takes() as found:
                    return found
                case Failed(text=text) if text:
                    otherwise = text
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return Takes(model=job.models[0], lines=(), refused=otherwise)
