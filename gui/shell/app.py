"""The window as a program: application, theme, log, and errors that nobody caught.

Garbage is collected in the GUI thread only. Python collects in whichever thread allocates. In a thread
that reads a file this would delete Qt objects outside their thread, and their timers would fire for
what no longer exists.
"""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
from PySide6.QtCore import QObject, QSettings, QTimer
from PySide6.QtWidgets import QApplication

from gui.base import faults
from gui.base.background import timer
from gui.base.theme import Theming
from kernels.errors import InputError

if TYPE_CHECKING:
    from gui.shell.main_window import MainWindow
PERIOD_MS = 500


class Collector(QObject):
    """While it lives, Python does not collect by itself; a timer collects what is due. `stop` ends that."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        gc.disable()
        self._timer = timer(self, PERIOD_MS, collect_due, repeats=True)
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()
        gc.enable()


def collect_due() -> None:
    """Collect the oldest generation that is due by Python's thresholds, and all younger ones."""
    counts, limits = gc.get_count(), gc.get_threshold()
    due = [g for g, (count, limit) in enumerate(zip(counts, limits, strict=True)) if 0 < limit < count]
    if due:
        gc.collect(due[-1])


def settings() -> QSettings:
    """The window's settings: a file in the user's configuration folder."""
    folder = platformdirs.user_config_path("kernelscope", appauthor=False)
    return QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat)


def _whole(value: object, otherwise: int) -> int:
    """A stored number; `otherwise` where it is none."""
    try:
        return int(str(value))
    except ValueError:
        return otherwise


def _runs_folder() -> Path:
    """Where runs are kept. A setting that cannot be read is told by the preferences, and prevents nothing."""
    from bench.results.store import RUNS
    from bench.run import settings

    try:
        return settings.runs_folder()
    except InputError as error:
        faults.log.warning("%s", error)
        return RUNS


def run() -> int:
    """Open the window, wait until it is closed, and return the exit code. Call `gui.base.display.problem`
    before: without a display Qt ends the process."""
    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    app.setApplicationName("kernelscope")
    app.setApplicationDisplayName("Kernelscope")
    app.setStyle("Fusion")
    handler = faults.Faults()
    handler.install(faults.log_path())
    stored = settings()
    theming = Theming(str(stored.value("theme", "system")))
    theming.enlarge(_whole(stored.value("zoom"), 100))
    theming.apply()

    from gui.shell.main_window import MainWindow

    window = MainWindow(stored, theming, runs=_runs_folder(), fault_handler=handler)
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
    """Let Ctrl-C in the terminal close the window. Python handles a signal only while it runs, hence the
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
