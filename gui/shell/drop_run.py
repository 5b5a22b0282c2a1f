"""A folder of a run of any kind, or a file of one, dropped on the window opens it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QWidget

from bench.kinds.registry import kinds
from bench.results.store import RESULTS_FILE


class RunDrop(QObject):
    """Filters the drops of `window`; anything but a folder goes on to the window itself."""

    def __init__(self, window: QWidget, opened: Callable[[Path], None]) -> None:
        super().__init__(window)
        self._opened = opened
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.DragEnter, QEvent.Type.DragMove, QEvent.Type.Drop):
            assert isinstance(event, QDropEvent)
            path = run_of(event.mimeData())
            if path is not None:
                event.acceptProposedAction()
                if event.type() == QEvent.Type.Drop:
                    self._opened(path)
                return True
        return False


def run_of(data: QMimeData) -> Path | None:
    """The folder that is dragged; None where it is something else. A folder that is no run counts as one:
    opening it says what is wrong."""
    for url in data.urls():
        path = Path(url.toLocalFile())
        if path.name in {RESULTS_FILE, *(kind.file for kind in kinds())}:
            path = path.parent
        if url.isLocalFile() and path.is_dir():
            return path
    return None
