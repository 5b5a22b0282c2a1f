"""A process that the window has started: what it writes, its end, and how it is ended with all that it
started."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Signal

from bench.run.client import end_worker, worker_environment

TAIL_NBYTES = 4000
NOT_STARTED = 127  # as a shell reports a command that there is not
END_MS = 1500  # how long one that is killed may take


class ChildProcess(QObject):
    """Signals: `wrote` when there is something to be read, `ended` with its exit status (negative: by that
    signal); what it wrote before can still be read then. refused: why it could not be started ("": it
    was)."""

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
        # Ctrl-C in the terminal reaches the window alone, which ends the process in order.
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
        """Of the process; 0 where it does not run."""
        return self._process.processId()

    @property
    def tail(self) -> str:
        """What was read last of its standard error."""
        return self._tail.decode("utf-8", "replace")

    def read(self, most: int | None = None) -> bytes:
        """What it wrote on its standard output, as far as it is there."""
        process = self._process
        process.setReadChannel(QProcess.ProcessChannel.StandardOutput)
        return bytes((process.readAll() if most is None else process.read(most)).data())

    def read_errors(self) -> bytes:
        """What it wrote on its standard error, as far as it is there."""
        data = bytes(self._process.readAllStandardError().data())
        self._tail = (self._tail + data)[-TAIL_NBYTES:]
        return data

    def write(self, data: bytes) -> None:
        self._process.write(data)

    def close_input(self) -> None:
        self._process.closeWriteChannel()

    def kill(self) -> None:
        """The process, and what was started in it; its end is told."""
        if self.id:
            end_worker(self.id, group=False)
        self._process.kill()

    def end(self, grace_ms: int = 0) -> None:
        """Nothing is told any more; it may end by itself within `grace_ms`, its input closed."""
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
