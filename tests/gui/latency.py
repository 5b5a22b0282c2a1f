"""How long the window's event loop is held up while a worker streams 1,000 messages a second.

`python -m tests.gui.latency` replays a run of 72 cases in a real window, on whatever platform Qt has
(xvfb-run, QT_QPA_PLATFORM=offscreen), and prints the longest gaps between two turns of a 1 ms timer, and how
much of each the window itself computed: on a busy machine the rest is other processes' turn. Not a test, for
that reason.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from PySide6.QtCore import QSettings, Qt, QTimer
from PySide6.QtWidgets import QApplication

from bench.results.records import Job
from gui.base.theme import Theming
from gui.shell.main_window import TOUR_SEEN, MainWindow

FAKE = Path(__file__).parent / "fake_worker.py"
JOB = Job(
    models=("net", "other"),
    backends=("engine-cuda", "ort-cuda", "engine-cpu", "ort-cpu"),
    batches=(1, 2, 4, 8, 16, 32, 64, 128, 256),
)


def main() -> int:
    app = QApplication(sys.argv[:1])
    app.setStyle("Fusion")
    gaps: list[tuple[float, float, float]] = []  # seconds, of them own work, at
    with tempfile.TemporaryDirectory() as folder:
        settings = QSettings(str(Path(folder) / "window.ini"), QSettings.Format.IniFormat)
        settings.setValue(TOUR_SEEN, True)
        theming = Theming("light")
        theming.apply()
        command = [sys.executable, str(FAKE), str(Path(folder) / "state"), "stream"]
        window = MainWindow(settings, theming, command=command, runs=Path(folder) / "runs")
        window.show()
        window.begin()
        last = started = time.perf_counter()
        worked = time.thread_time()

        def beat() -> None:
            nonlocal last, worked
            now, work = time.perf_counter(), time.thread_time()
            gaps.append((now - last - 0.001, work - worked, now - started))
            last, worked = now, work

        timer = QTimer()
        timer.setTimerType(Qt.TimerType.PreciseTimer)
        timer.setInterval(1)
        timer.timeout.connect(beat)

        def begin() -> None:
            nonlocal last, started, worked
            last = started = time.perf_counter()
            worked = time.thread_time()
            timer.start()
            window.start(JOB)

        QTimer.singleShot(3000, begin)
        window.session.ended.connect(lambda: QTimer.singleShot(500, app.quit))
        app.exec()
        timer.stop()
        seconds = time.perf_counter() - started
        measured = len(window.state.measurements)
        window.end()
    for words, key in (("longest gaps", 0), ("most own work", 1)):
        gaps.sort(key=lambda gap: -gap[key])
        told = ", ".join(f"{g * 1e3:.0f} ms ({own * 1e3:.0f} own) at {at:.1f} s" for g, own, at in gaps[:5])
        print(f"{words}: {told}; {sum(gap[key] > 0.05 for gap in gaps)} above 50 ms")
    print(f"{measured} measurements in {seconds:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
