"""Work in threads beside the GUI thread, and timers."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from kernels.errors import KernelscopeError


def timer(owner: QObject, interval_ms: int, do: Callable[[], object], repeats: bool = False) -> QTimer:
    """A timer, not started yet, that calls `do` once `interval_ms` after its start, or again and again."""
    clock = QTimer(owner, singleShot=not repeats, interval=interval_ms)
    clock.timeout.connect(do)
    return clock


class Background(QObject):
    """Runs functions in threads. `start` begins one; its result arrives on the GUI thread. If several of
    one kind are started, only the result of the last is used."""

    _done = Signal(str, int, object, object)  # kind, number, result, error

    def __init__(self, tell: Callable[[str], None], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tell = tell
        self._number = 0
        self._waiting: dict[str, tuple[int, Callable[[Any], None]]] = {}
        self._done.connect(self._on_done)

    @property
    def busy(self) -> bool:
        return bool(self._waiting)

    def start(self, kind: str, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Call `work` in a thread, then `then` with its result on the GUI thread. A KernelscopeError is
        passed to `tell` as a sentence; any other exception is raised again on the GUI thread."""
        self._number += 1
        self._waiting[kind] = (self._number, then)
        number = self._number

        def run() -> None:
            result, error = None, None
            try:
                result = work()
            except Exception as raised:  # raised again in the GUI thread, which handles it
                error = raised
            with contextlib.suppress(RuntimeError):  # the window has closed meanwhile
                self._done.emit(kind, number, result, error)

        threading.Thread(target=run, name=f"window: {kind}", daemon=True).start()

    def _on_done(self, kind: str, number: int, result: Any, error: Exception | None) -> None:
        waiting = self._waiting.get(kind)
        if waiting is None or waiting[0] != number:
            return
        del self._waiting[kind]
        if isinstance(error, KernelscopeError):
            self._tell(str(error))
        elif error is not None:
            raise error
        else:
            waiting[1](result)
