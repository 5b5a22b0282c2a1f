"""What the window takes: the time until it is seen, the memory of 200 cases and of its helper processes.

`python -m tests.gui.figures` opens the real window, on whatever platform Qt has, three times as a process for
the first (printed beside the CPU time of that process, which other load does not lengthen as much), and once
here for the others. `--helpers` measures AlexNet at batch 1 as well, and says what the processes that stay
hold when it is over. Not a test: what is printed depends on the machine and on what else it does.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication

from bench.results.records import Case, Job
from gui.base.theme import Theming
from gui.shell.main_window import TOUR_SEEN, MainWindow
from tests.bench import synthetic
from tests.gui import screenshots

STARTS = 3
CASES = 200
WAIT_S = 300.0

# As main.py does: from nothing until Qt has painted the window once and its queue is empty.
_START = """
import sys, time
from PySide6.QtCore import QEvent, QObject, QSettings, QTimer
from PySide6.QtWidgets import QApplication

app = QApplication(sys.argv[:1])

class Seen(QObject):
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint and watched.isWidgetType() and watched.window().isVisible():
            app.removeEventFilter(self)
            QTimer.singleShot(0, self.tell)
        return False
    def tell(self):
        print(time.time(), time.process_time(), flush=True)
        app.closeAllWindows()

seen = Seen()
app.installEventFilter(seen)
import main
from gui.shell import app as program

program.settings = lambda: QSettings(sys.argv[1], QSettings.Format.IniFormat)
program.run()
"""


def start(folder: Path) -> tuple[float, float]:
    """Seconds from the start of a process until its window is painted: by the wall, of the processor."""
    began = time.time()
    command = [sys.executable, "-c", _START, str(folder / "window.ini")]
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    at, worked = map(float, out.stdout.split())
    return at - began, worked


def resident() -> float:
    """MB of this process."""
    gc.collect()
    return psutil.Process().memory_info().rss / 1e6


def helpers() -> str:
    """The processes below this one and what each holds for itself (USS)."""
    held = [
        (child.memory_full_info().uss / 1e6, " ".join(child.cmdline())[-60:])
        for child in psutil.Process().children(recursive=True)
    ]
    return "; ".join(f"{mb:.0f} MB {words}" for mb, words in sorted(held, reverse=True)) or "none"


def main() -> int:
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as own:
        folder = Path(own)
        for _ in range(STARTS):
            wall, worked = start(folder)
            print(f"window painted after {wall:.2f} s, {worked:.2f} s of them CPU time")
        app = QApplication(sys.argv[:1])
        app.setStyle("Fusion")
        settings = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat)
        settings.setValue(TOUR_SEEN, True)
        theming = Theming("light")
        theming.apply()
        window = MainWindow(settings, theming, runs=folder / "runs")
        window.resize(*screenshots.SIZE)
        window.show()
        window.begin()
        screenshots.wait(lambda: bool(window.backends), WAIT_S)
        screenshots.settle(window, 5.0)  # what is built ahead is built
        memory(window)
        if "--helpers" in sys.argv:
            alexnet(window)
        window.end()
    return 0


def memory(window: MainWindow) -> None:
    """What 200 cases more add, once 20 have been shown."""
    cases = [
        Case(model=model, backend=backend, precision="fp32", batch=2**power, images=100)
        for model in (f"net{number}" for number in range(CASES // 20 + 1))
        for backend in ("engine-cpu", "ort-cpu")
        for power in range(10)
    ]
    sizes = []
    for count in (20, CASES + 20):
        shown = cases[:count]
        window.state.open(synthetic.record(shown), None, map(synthetic.measurement, shown))
        screenshots.settle(window, 2.0)
        sizes.append(resident())
    print(f"{CASES} cases add {sizes[1] - sizes[0]:.1f} MB to {sizes[0]:.0f} MB")


def alexnet(window: MainWindow) -> None:
    print(f"helpers before: {helpers()}")
    backends = ("engine-cpu", "ort-cpu")
    window.start(Job(models=("alexnet-digits",), backends=backends, batches=(1,), images=(10,)))
    screenshots.wait(lambda: window.session.active, 10)
    most = 0.0
    end = time.monotonic() + WAIT_S
    while window.session.active and time.monotonic() < end:
        screenshots.wait(lambda: not window.session.active, 0.5)
        held = [c.memory_info().rss for c in psutil.Process().children(recursive=True) if c.is_running()]
        most = max(most, sum(held) / 1e6)
    screenshots.settle(window, 15.0)
    print(f"helpers while measuring: at most {most:.0f} MB (resident); 15 s later: {helpers()}")


if __name__ == "__main__":
    sys.exit(main())
