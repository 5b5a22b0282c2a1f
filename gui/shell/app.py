"""The window as a program: application, theme, log, and what happens to errors nobody caught."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import platformdirs
from PySide6.QtCore import QSettings, QTimer
from PySide6.QtWidgets import QApplication

from bench.results.records import Job
from gui.base import faults
from gui.base.garbage import Collector
from gui.base.theme import Theming


def settings() -> QSettings:
    """Where the window keeps its choices: a file in the user's configuration folder."""
    folder = platformdirs.user_config_path("kernelscope", appauthor=False)
    return QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat)


def run(job: Job | None = None, folder: Path | None = None) -> int:
    """Open the window and stay until it is closed; the exit code. `job` fills the form in; `folder` is a run
    to show. Call `gui.base.display.problem` before: without a display Qt ends the process."""
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
    if job is not None:
        window.form.set_job(job)
    window.show()
    QTimer.singleShot(0, window.begin)
    if folder is not None:
        QTimer.singleShot(0, lambda: _open(window, folder))
    collector = Collector()
    with _interrupts(window):
        status = app.exec()
    collector.stop()
    handler.uninstall()
    return status


def _open(window: object, folder: Path) -> None:
    from bench.comparison.kind import KIND as COMPARISON
    from gui.shell.main_window import MainWindow
    from kernels.errors import KernelscopeError

    assert isinstance(window, MainWindow)
    try:
        held = COMPARISON.open(folder)
        window.state.open(held.header, held.path, held.measurements())
    except KernelscopeError as error:
        window.tell(str(error))


class _interrupts:
    """Ctrl-C in the terminal closes the window. Python hears of a signal only while it runs, hence the
    timer."""

    def __init__(self, window: object) -> None:
        self._window = window
        self._timer = QTimer()
        self._timer.setInterval(300)
        self._timer.timeout.connect(lambda: None)

    def __enter__(self) -> None:
        self._timer.start()
        self._before = signal.signal(signal.SIGINT, self._end)

    def __exit__(self, *_: object) -> None:
        self._timer.stop()
        signal.signal(signal.SIGINT, self._before)

    def _end(self, *_: object) -> None:
        from gui.shell.main_window import MainWindow

        assert isinstance(self._window, MainWindow)
        self._window.end()
