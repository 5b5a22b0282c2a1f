"""Exports in child processes: the headless `export` draws, the window only says how it goes.

One after the other; a run that is being measured is exported as far as it is on the disk.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from gui.sessions.child import ChildProcess

MAIN = Path(__file__).parents[2] / "main.py"


@dataclass(frozen=True)
class Order:
    """arguments: of main.py; what: as a sentence names it ("the chart …"); where: the file or folder that
    comes of it; then: called once it is there (None: it is shown as a result); expected: about how many files
    (0: that is not known)."""

    arguments: tuple[str, ...]
    what: str
    where: Path
    then: Callable[[], None] | None = None
    expected: int = 0


@dataclass(frozen=True)
class ExportStanding:
    """What goes on: the order in the making, files written so far, orders waiting."""

    order: Order
    files: int = 0
    waiting: int = 0


class Exporter(QObject):
    """`stands` carries a Standing while something is made, `made` an Order and its files, `failed` and
    `cancelled` a sentence; `idle` when nothing is left to do."""

    stands = Signal(object)
    made = Signal(object, object)
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
        """End what runs and forget what waits; the files that are whole stay."""
        order, files = self._order, self._output.count(b"\n")
        if order is None:
            return
        self.quit()
        done = f"; {files} file{'s' if files != 1 else ''} made so far" if files else ""
        self.cancelled.emit(f"Cancelled the export of {order.what}{done}")
        self.idle.emit()

    def quit(self) -> None:
        """End what runs; files are whole or not there."""
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
            told = process.tail.strip().splitlines() or [f"its process ended with exit code {code}"]
            reason = told[-1] if code > 0 else "the process that drew it was killed"
        if reason:
            self.failed.emit(f"Could not export {order.what}: {reason}.".replace("..", "."))
        else:
            self.made.emit(
                order, [Path(line) for line in self._output.decode("utf-8", "replace").splitlines()]
            )
            if order.then is not None:
                order.then()
        if self._order is None and self._orders:
            self._next()
        elif self._order is None:
            self.idle.emit()
