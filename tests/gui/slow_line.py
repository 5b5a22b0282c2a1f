"""The window, with its runs measured at the end of a long line: `python -m tests.gui.slow_line [PAIRS]`.

The line is ssh to a server on the loopback, through a proxy that adds 200 ms to every question and its
answer and lets 1 MB/s through. It is said how long it takes from F5 to the first figure, the first time (with
a cache as `remote add` leaves it) and later. Then so many pairs of runs (6), one of each pair here and one
there, which goes first in turn: of each contender it is said how many times as long it takes there, with an
interval over the pairs, since two runs differ by more than the interval of either says. Both take the same
kernels. Not a test, as a busy machine takes longer, and moves more. Exit code 1: a first figure came late, or
a time is another one there.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication

from bench.extras.remote import installing
from bench.extras.remote.places import Place
from bench.results.records import Job
from bench.results.stats import Verdict, verdict
from bench.results.stats.interval import Interval
from bench.results.stats.student import student
from bench.run.elsewhere import HERE
from bench.views.diff.between import between
from bench.words.orders import WORDS
from gui.base.theme import Theming
from gui.shell.main_window import TOUR_SEEN, MainWindow
from tests.bench.extras.remote import loopback, there
from tests.bench.extras.remote.slowed import slowed
from tests.bench.extras.remote.whole import share_choices
from tests.gui.screenshots import wait

JOB = Job(models=("lenet5-digits",), backends=("engine-cpu", "ort-cpu"), batches=(1, 16), budget_s=1.0)
FIRST_S = 5.0  # from F5 to the first figure


class Figures:
    """What is seen from one F5 to its end: seconds to the first figure, and the run's folder. on: where."""

    def __init__(self, window: MainWindow, on: str) -> None:
        if window.where.name != on:
            greeted: list[object] = []
            window.session.greeted.connect(greeted.append)
            window.where.choose(on)
            wait(lambda: bool(greeted), 60)
            window.session.greeted.disconnect(greeted.append)
        window.form.set_job(JOB)
        began = time.perf_counter()
        window.form.request_run()
        assert window.session.active, window.form.summary
        wait(lambda: bool(window.state.provisional() or window.state.measurements), 120)
        self.first_s = time.perf_counter() - began
        wait(lambda: not window.session.active, 300)
        assert window.state.folder is not None
        self.folder = window.state.folder
        assert [m.disposition for m in window.state.measurements] == ["ok"] * 4


def first_figures(window: MainWindow, place: str) -> bool:
    """Whether they come in time."""
    print(f"first figure here: {Figures(window, HERE).first_s:.1f} s after F5")
    late = False
    for words in ("for the first time", "again"):
        far = Figures(window, place)
        print(f"first figure there, {words}: {far.first_s:.1f} s after F5 (at most {FIRST_S:g})")
        late |= far.first_s > FIRST_S
    return not late


def unmoved(window: MainWindow, place: Place, pairs: int) -> bool:
    """Whether no time is another one there."""
    share_choices(place)
    found: dict[str, list[float]] = {}
    for number in range(pairs):
        turns = (HERE, place.name) if number % 2 else (place.name, HERE)
        folders = {on: Figures(window, on).folder for on in turns}
        for change in between(folders[HERE], folders[place.name]).changes:
            here, there_ = change.pair.a, change.pair.b
            if here is not None and there_ is not None and here.time is not None and there_.time is not None:
                longer = math.log(there_.time.value / here.time.value)
                found.setdefault(change.pair.words, []).append(longer)
    moved = False
    for words, logs in found.items():
        mean = statistics.fmean(logs)
        half = student(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
        ratio = Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))
        told = verdict(ratio)
        moved |= told in (Verdict.FASTER, Verdict.SLOWER)
        print(
            f"{words}: there {ratio.value:.3f} times as long as here "
            f"(95 %: {ratio.low:.3f} to {ratio.high:.3f}, {len(logs)} pairs): {WORDS[told.value]}"
        )
    return not moved


def main(pairs: int = 6) -> int:
    if pairs < 2:
        sys.exit("PAIRS has to be 2 or more: one says nothing of its own spread")
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
                wait(lambda: bool(window.backends), 60)
                good = first_figures(window, place.name)
                good &= unmoved(window, place, pairs)
            finally:
                window.end()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
