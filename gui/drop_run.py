"""A folder of a run or a profile, or a file of one, dropped on the window opens it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QWidget

from bench.store import RESULTS_FILE, RUN_FILE


class RunDrop(QObject):
    """Filters the drops of `window`; anything but a run goes on to the window itself. must_hold: takes only
    folders that have this file; of two filters the one made last is asked first."""

    def __init__(self, window: QWidget, opened: Callable[[Path], None], must_hold: str = "") -> None:
        super().__init__(window)
        self._opened = opened
        self._must_hold = must_hold
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.DragEnter, QEvent.Type.DragMove, QEvent.Type.Drop):
            assert isinstance(event, QDropEvent)
            path = run_of(event.mimeData(), self._must_hold)
            if path is not None:
                event.acceptProposedAction()
                if event.type() == QEvent.Type.Drop:
                    self._opened(path)
                return True
        return False


def run_of(data: QMimeData, must_hold: str = "") -> Path | None:
    """The run folder that is dragged; None where it is something else. A folder that is no run counts as
    one, unless it must hold a file: opening it says what is wrong."""
    for url in data.urls():
        path = Path(url.toLocalFile())
        if path.name in (RUN_FILE, RESULTS_FILE, must_hold):
            path = path.parent
        if url.isLocalFile() and path.is_dir() and (not must_hold or (path / must_hold).is_file()):
            return path
    return None
