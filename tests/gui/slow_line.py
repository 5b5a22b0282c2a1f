"""The window, with its runs measured at the end of a long line: `python -m tests.gui.slow_line`.

The line is ssh to a server on the loopback, through a proxy that adds 200 ms to every question and its
answer and lets 1 MB/s through. It is said how long it takes from F5 to the first figure, and whether what was
measured differs from what a run without a line measures, by the rule of `runs diff`. Not a test, as a busy
machine takes longer.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication

from bench.extras.remote import installing
from bench.results.records import Job
from bench.views.diff.between import between
from bench.views.sentences.diff_sentences import summary
from gui.base.theme import Theming
from gui.shell.main_window import TOUR_SEEN, MainWindow
from tests.bench.extras.remote import loopback, there
from tests.bench.extras.remote.slowed import slowed
from tests.gui.screenshots import wait

JOB = Job(models=("lenet5-digits",), backends=("engine-cpu", "ort-cpu"), batches=(1, 16), budget_s=1.0)
FIRST_S = 5.0  # from F5 to the first figure


class Figures:
    """What is seen from one F5 to its end: seconds to the first figure, and the run's folder."""

    def __init__(self, window: MainWindow) -> None:
        window.form.set_job(JOB)
        began = time.perf_counter()
        window.form.request_run()
        assert window.session.active, window.form.summary
        wait(lambda: bool(window.state.provisional() or window.state.measurements), 120)
        self.first_s = time.perf_counter() - began
        wait(lambda: not window.session.active, 300)
        assert window.state.folder is not None
        self.folder = window.state.folder
        self.fine = [m.disposition for m in window.state.measurements] == ["ok"] * 4


def at_the_end_of_a_long_line(window: MainWindow) -> bool:
    """Whether all is as it should be."""
    wait(lambda: bool(window.backends), 60)
    here = Figures(window)
    window.where.choose("lab")
    greeted = []
    window.session.greeted.connect(greeted.append)
    wait(lambda: bool(greeted), 60)
    print(f"first figure here: {here.first_s:.1f} s after F5")
    good = here.fine
    for words in ("for the first time", "again"):
        far = Figures(window)
        print(f"first figure there, {words}: {far.first_s:.1f} s after F5")
        good &= far.fine
    found = between(here.folder, far.folder)
    for change in found.changes:
        times = (side.time for side in (change.pair.a, change.pair.b) if side is not None)
        told = ", ".join(
            f"{each.value / 1e3:.1f} µs ({each.low / 1e3:.1f} to {each.high / 1e3:.1f})"
            for each in times
            if each
        )
        print(f"{change.pair.words}: here and there {told}")
    print(summary(found))
    return good and far.first_s <= FIRST_S


def main() -> int:
    app = QApplication(sys.argv[:1])
    app.setStyle("Fusion")
    with tempfile.TemporaryDirectory() as own:
        folder = Path(own)
        data = {name: value for name in ("KERNELSCOPE_DATA",) if (value := os.environ.get(name))}
        with (
            loopback.loopback(folder / "sshd", **data) as server,
            slowed(server.port) as port,
            loopback.entered(server),
        ):
            server.lead_through(port)
            place = there.make(folder, host=loopback.HOST, launch=(), shared=True)
            installing.examined(place, print, new=True)  # as `remote add` leaves it
            settings = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat)
            settings.setValue(TOUR_SEEN, True)
            theming = Theming("light")
            theming.apply()
            window = MainWindow(settings, theming, runs=folder / "runs")
            window.show()
            window.begin()
            try:
                good = at_the_end_of_a_long_line(window)
            finally:
                window.end()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
