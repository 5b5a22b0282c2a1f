"""The window as a program: application, theme, log, and what happens to errors nobody caught."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import platformdirs
from PySide6.QtCore import QSettings, QTimer
from PySide6.QtWidgets import QApplication

from gui.base import faults
from gui.base.garbage import Collector
from gui.base.theme import Theming

if TYPE_CHECKING:
    from gui.shell.main_window import MainWindow


def settings() -> QSettings:
    """Where the window keeps its choices: a file in the user's configuration folder."""
    folder = platformdirs.user_config_path("kernelscope", appauthor=False)
    return QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat)


def run() -> int:
    """Open the window and stay until it is closed; the exit code. Call `gui.base.display.problem` before:
    without a display Qt ends the process."""
    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    app.setApplicationName("kernelscope")
    app.setApplicationDisplayName("Kernelscope")
    app.setStyle("Fusion")
    handler = faults.Faults()
    handler.install(faults.log_path())
    kept = settings()
    theming = Theming(str(kept.value("theme", "system")))
    theming.apply()

    from gui.shell.main_window import MainWindow

    window = MainWindow(kept, theming, fault_handler=handler)
    window.show()
    QTimer.singleShot(0, window.begin)
    collector = Collector()
    with _interrupts(window):
        status = app.exec()
    collector.stop()
    handler.uninstall()
    return status


@contextlib.contextmanager
def _interrupts(window: MainWindow) -> Iterator[None]:
    """Ctrl-C in the terminal closes the window. Python hears of a signal only while it runs, hence the
    timer."""
    timer = QTimer(interval=300)
    timer.timeout.connect(lambda: None)
    timer.start()
    before = signal.signal(signal.SIGINT, lambda *_: window.end())
    try:
        yield
    finally:
        timer.stop()
        signal.signal(signal.SIGINT, before)
