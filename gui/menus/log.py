"""Help: the log of the window, and that of the worker while it measures. Both are shown live."""

from __future__ import annotations

import contextlib
from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout

from bench.results.store import LOG_FILE
from gui.base import faults
from gui.base.background import timer
from gui.base.boxes import filled, placed
from gui.shell.main_window import Actions, MainWindow
from gui.widgets.controls import Combo, Label, fixed_text

ORDER = 20
TAIL_NBYTES = 200_000
PERIOD_MS = 500
WINDOW, WORKER = "window", "worker"
SOURCES = {WINDOW: "The window's log", WORKER: "The worker's log, of the run measured or shown"}
EMPTY = {
    WINDOW: "The log is empty.",
    WORKER: "There is no run, or its worker has written nothing.",
}


def add_to(window: MainWindow, actions: Actions) -> None:
    def show() -> LogWindow:
        dialog = LogWindow(window)
        dialog.show()
        return dialog

    actions.add("help", "log", "Show &log", show)


class LogWindow(QDialog):
    """The end of a log, and what is added to it. It blocks nothing. While its end is in sight it stays in
    sight."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._path: Path | None = None
        self._read = 0  # bytes of the file that are shown, or were left out
        self.setWindowTitle("Log")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.source = Combo("Log", chosen=lambda _: self._begin())
        active = any(session.active for session in window.sessions)
        self.source.offer(SOURCES, WORKER if active else WINDOW)
        self.where = Label(selectable=True, role="muted")
        self.text = fixed_text("", "Log")
        self.text.setMaximumBlockCount(20_000)
        head = filled(QHBoxLayout(), self.source, (self.where, 1))
        filled(QVBoxLayout(self), head, self.text)
        self.resize(placed(QSize(900, 500), window.screen().availableGeometry()).size())
        self._clock = timer(self, PERIOD_MS, self.look, repeats=True)
        self._clock.start()
        self._begin()

    def look(self) -> None:
        """Show what was added since the last look."""
        with contextlib.suppress(OSError):  # it was removed meanwhile, or cannot be read now
            self._look()

    # ------------------------------------------------------------------------------------------ the inside

    def _look(self) -> None:
        path = self._file()
        if path != self._path:
            self._begin()
            return
        size = path.stat().st_size if path is not None and path.is_file() else 0
        if size < self._read:  # a new file under the name
            self._begin()
        elif path is not None and size > self._read:
            self._add(path)

    def _begin(self) -> None:
        self._path, self._read = self._file(), 0
        self.text.clear()
        self.where.setText(str(self._path or ""))
        self.text.setPlaceholderText(EMPTY[self.source.currentData()])
        with contextlib.suppress(OSError):
            if self._path is not None and self._path.is_file():
                self._read = max(0, self._path.stat().st_size - TAIL_NBYTES)
                self._add(self._path)

    def _add(self, path: Path) -> None:
        with path.open("rb") as file:
            file.seek(self._read)
            data = file.read(TAIL_NBYTES)
        self._read += len(data)
        bar = self.text.verticalScrollBar()
        at_end = bar.value() >= bar.maximum() - 1
        cursor = QTextCursor(self.text.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(data.decode("utf-8", "replace"))
        if at_end:
            bar.setValue(bar.maximum())

    def _file(self) -> Path | None:
        if self.source.currentData() == WINDOW:
            return faults.log_path()
        writing = [session.writing for session in self._window.sessions if session.writing is not None]
        folder = writing[0] if writing else self._window.state.folder
        return folder / LOG_FILE if folder is not None else None
