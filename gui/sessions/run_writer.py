"""Writes a run's folder, of any kind, off the GUI thread: a measurement is on the disk before it is shown."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Signal

from bench.kinds.folder import Folder
from kernels.errors import KernelscopeError

_Order = Callable[[], None]
MOST_TOLD = 50  # measurements in one signal, so that its receiver is soon done


class RunWriter(QObject):
    """One a run. `finish` when nothing more will come; `closed` tells that all of it is on the disk. Raises
    InputError where another process writes into the folder."""

    written = Signal(object)  # tuple[Measurement, ...], as many as were written since the last emission
    failed = Signal(str)  # once: why nothing can be written any more
    closed = Signal()

    def __init__(self, folder: Folder[Any, Any], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.folder = folder
        folder.claim()
        self._orders: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
        self._written: list[Any] = []
        self._broken = False
        self._thread = threading.Thread(target=self._work, name="run writer", daemon=True)
        self._thread.start()

    def append(self, measurement: Any) -> None:
        # Cancelled is said and not written: a resume runs the case.
        self._orders.put(lambda: self._append(measurement))

    def heard(self, message: object) -> None:
        """Keep what a message of the worker tells of the whole."""
        self._orders.put(lambda: self.folder.heard(message))

    def log(self, data: bytes) -> None:
        """Add what the worker wrote on its standard error to the run's log."""
        self._orders.put(lambda: self._log(data))

    def beside(self, write: _Order) -> None:
        """Have this called after what came before it, whatever it writes elsewhere."""
        self._orders.put(write)

    def finish(self) -> None:
        """Write what is left, then end the thread."""
        self._orders.put(None)

    def wait(self) -> None:
        """Until the thread has ended; after `finish`."""
        self._thread.join()

    def _append(self, measurement: Any) -> None:
        if measurement.disposition != "cancelled":
            self.folder.append(measurement)
        self._written.append(measurement)

    def _log(self, data: bytes) -> None:
        try:
            with self.folder.log.open("ab") as file:
                file.write(data)
        except OSError:
            pass  # the log is not worth the run

    def _work(self) -> None:
        order = self._orders.get()
        while order is not None:
            if not self._broken:
                try:
                    order()
                except KernelscopeError as error:
                    self._broken = True
                    self.failed.emit(str(error))
            if (self._written and self._orders.empty()) or len(self._written) >= MOST_TOLD:
                self._tell()
            order = self._orders.get()
        self._tell()
        self.folder.close()
        self.closed.emit()

    def _tell(self) -> None:
        if self._written:
            written, self._written = tuple(self._written), []
            self.written.emit(written)
