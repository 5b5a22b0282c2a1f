"""Pictures of the running window, every page in both themes: `python -m tests.gui.screenshots --out DIR`;
with `--matrix` in each size of MATRIX and in every theme, to be looked at before a release.

It opens the real window on whatever platform Qt has (a display, or QT_QPA_PLATFORM=offscreen), with settings
and a runs folder of its own, shows a run (the sample with its ladder and profile, or --run, beside which a
ladder and a profile are measured) or measures one (--live), and leaves one PNG
a page and theme: `compare-light.png`, … With --live also the window in the middle of the run. Its exit code
is 1 where the window had something to complain about.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from PySide6.QtCore import QCoreApplication, QEvent, QEventLoop, QSettings
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QWidget

from bench.results.kinds import kind_of
from bench.results.records import Measurement
from bench.results.rows import label, title
from bench.results.store import RUNS
from bench.results.summaries import BESIDE_SAMPLE, SAMPLE
from bench.run.kinds.comparison import KIND as COMPARISON
from gui.base import faults
from gui.base.theme import Theming
from gui.shell.main_window import TOUR_SEEN, MainWindow

MAX_NBYTES = 150_000
SIZE = (1600, 1000)
# Of screens: width and height in their own pixels, how many of them a pixel of the window has, and the size
# of text in percent.
MATRIX = ((1366, 768, 1, 100), (1920, 1080, 1, 100), (2560, 1440, 2, 100), (1920, 1080, 1, 200))
ALL = ("light", "dark", "contrast")
LOOKS = {**{name: (name,) for name in ALL}, "both": ALL[:2], "all": ALL}
STEPS = 3  # of a page's showcase: what is there to be shown may have to be planned, then measured
WAIT_S = 60.0  # for the worker to say what the machine can run: on a first start it compiles
REST_S = 300.0  # for what a page measures to be shown: a ladder, on a machine that does much else, too


class Screenshots:
    """Takes the pictures of one window into a folder; `taken` lists them."""

    def __init__(
        self, window: MainWindow, out: Path, themes: Sequence[str], most: float = MAX_NBYTES
    ) -> None:
        self._window = window
        self._most = most  # bytes of a picture
        self._out = out
        self._themes = themes
        self.taken: list[Path] = []

    def pages(self) -> None:
        """Every page, in every theme: the first one as a run opens, the others with something selected."""
        window = self._window
        for index, page in enumerate(window.pages):
            if index == 1:
                select(window)
            window.tabs.setCurrentIndex(index)
            settle(window)
            page.showcase()
            for _ in range(STEPS):
                if page.at_rest:
                    break
                wait(functools.partial(getattr, page, "at_rest"), REST_S)
                page.showcase()
            settle(window)
            self.take(page.title.lower())

    def take(self, name: str) -> None:
        """The window as it is, in every theme."""
        # That which is on comes first: with each switch every widget that there is is polished anew.
        on = self._window.theming.theme.name
        for theme in sorted(self._themes, key=lambda theme: theme != on):
            self._window.theming.choose(theme)
            settle(self._window)
            path = self._out / f"{name}-{theme}.png"
            image = self._window.grab().toImage()
            write(image, path) if self._most < math.inf else image.save(str(path))
            self.taken.append(path)


def write(image: QImage, path: Path) -> None:
    """As a PNG of at most MAX_NBYTES: with a palette, of fewer colours where it has to be."""
    image = image.convertToFormat(QImage.Format.Format_RGB888)
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())
    pixels = rows[:, : 3 * image.width()].reshape(-1, 3)
    for colours in (256, 128, 64):
        palette, indices = reduced(pixels, colours)
        made = Image.fromarray(indices.reshape(image.height(), image.width()), "P")
        made.putpalette(palette.tobytes())
        made.save(path, optimize=True)
        if path.stat().st_size <= MAX_NBYTES:
            return


def reduced(pixels: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """A palette of at most so many of the colours (n × 3, uint8) and each pixel's place in it (uint8).

    One after another, the colour is taken that is furthest off from those taken, squared and times how many
    pixels have it: paper, ink and what the charts are drawn in stay what they are; averages would not.
    """
    packed = pixels.astype(np.uint32) @ np.array([65536, 256, 1], np.uint32)
    found, inverse, counts = np.unique(packed, return_inverse=True, return_counts=True)
    distinct = np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1).astype(np.int32)
    away = np.full(len(distinct), np.inf)
    nearest = np.zeros(len(distinct), np.uint8)
    taken: list[int] = []
    while len(taken) < most and away.any():
        at = int((away * counts).argmax()) if taken else int(counts.argmax())
        off = ((distinct - distinct[at]) ** 2).sum(axis=1)
        nearest[off < away] = len(taken)
        away = np.minimum(away, off)
        taken.append(at)
    return distinct[taken].astype(np.uint8), nearest[inverse]


def wait(until: Callable[[], bool], seconds: float) -> bool:
    """Let the window live until something holds or the time is over; whether it holds."""
    end = time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            return False
        QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)
        time.sleep(0.005)
    return True


def settle(window: MainWindow, seconds: float = 0.6) -> None:
    """Until what is on its way is drawn: files are read on threads, charts are laid out in steps."""
    end = time.monotonic() + seconds
    wait(lambda: time.monotonic() > end, 10 * seconds)
    window.redraw.flush()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    QCoreApplication.processEvents()


def tells_most(measurements: Sequence[Measurement], who: str = "") -> Measurement | None:
    """One whose layers are known, of the contender `who` or else of a backend of ours, at the largest batch
    size of the first model."""
    return max(
        (m for m in measurements if m.disposition == "ok" and m.case.model == measurements[0].case.model),
        key=lambda m: (
            bool(m.layers),
            label(m.case.backend, m.case.precision) == who,
            m.reference not in ("", m.case.backend),
            m.case.batch,
        ),
        default=None,
    )


def select(window: MainWindow) -> None:
    """The measurement that tells most, of what the first card is about, and the layer that takes longest."""
    window.redraw.flush()
    who = next((card.who for card in window.state.cards()), "")
    if (found := tells_most(window.state.measurements, who)) is not None:
        slowest = max(found.layers, key=lambda layer: layer.time_ns or 0.0, default=None)
        window.state.select(found.case, slowest.output if slowest is not None else "")


def open_run(window: MainWindow, folder: Path) -> None:
    """Show a run folder. Raises InputError where it is none."""
    held = COMPARISON.open(folder)
    window.state.open(held.header, held.path, held.measurements())


def open_beside(window: MainWindow, runs: Path) -> None:
    """The ladder and the profile that come with the sample run, copied into a folder of runs and shown on
    their pages, so that nothing is measured for a picture."""
    for path in BESIDE_SAMPLE:
        shown = shutil.copytree(path, runs / path.name.removeprefix("sample_"))
        kind = kind_of(shown)
        assert kind is not None
        window.showers[kind.name](shown, False)


def measure(window: MainWindow, pictures: Screenshots, seconds: float) -> None:
    """Run the comparison in the form to its end, or for so long; with pictures from the middle of it."""
    window.form.request_run()
    end = time.monotonic() + seconds

    def half() -> bool:
        standing = window.session.standing
        return not standing.active or (standing.total > 0 and 2 * standing.done >= standing.total)

    if wait(half, seconds) and window.session.active:
        select(window)
        pictures.take("running")
    wait(lambda: not window.session.active, max(0.0, end - time.monotonic()))
    if window.session.active:
        window.session.cancel()
        wait(lambda: not window.session.active, 30)


def complaints(window: MainWindow) -> str:
    """What the window says of itself in its banner: that others use the machine is no fault of it."""
    machine = tuple(sentence for session in window.sessions for sentence in session.warned)
    return "\n".join(line for line in window.banner.text.splitlines() if not line.startswith(machine))


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.gui.screenshots", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the pictures go")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--run", type=Path, default=SAMPLE, help="a run folder (default: the sample run)")
    which.add_argument("--live", action="store_true", help="measure the default comparison instead")
    parser.add_argument("--seconds", type=float, default=400.0, help="the most a live run takes")
    parser.add_argument("--theme", choices=LOOKS, default="both")
    parser.add_argument(
        "--size", type=_size, default=SIZE, metavar="WxH", help="of the window (default: 1600x1000)"
    )
    parser.add_argument("--zoom", type=int, default=100, metavar="PERCENT", help="size of text")
    parser.add_argument("--matrix", action="store_true", help="in every size and theme, a folder a size")
    return parser.parse_args(given)


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    return int(width), int(height)


def matrix(out: Path) -> int:
    """The pictures in each size of MATRIX: Qt takes the scale of a screen when a program starts."""
    worst = 0
    for width, height, scale, zoom in MATRIX:
        size = f"{width // scale}x{height // scale}"
        command = [sys.executable, "-m", "tests.gui.screenshots", "--theme", "all", "--size", size]
        command += ["--zoom", str(zoom)]
        folder = out / f"{width}x{height}{f'-text-{zoom}' if zoom != 100 else ''}"
        made = subprocess.run(
            [*command, "--out", str(folder)], env={**os.environ, "QT_SCALE_FACTOR": str(scale)}, check=False
        )
        worst = max(worst, made.returncode)
    return worst


def main(given: Sequence[str] | None = None) -> int:
    """Take the pictures; 0, or 1 where the window complained or a picture is too large."""
    asked = _arguments(given)
    out, run = asked.out.absolute(), asked.run.absolute()
    if asked.matrix:
        return matrix(out)
    most = MAX_NBYTES if asked.size == SIZE else math.inf
    out.mkdir(parents=True, exist_ok=True)
    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    app.setApplicationDisplayName("Kernelscope")
    app.setStyle("Fusion")
    # In a folder of its own: the window shows runs/… as where it keeps runs, on every machine.
    with tempfile.TemporaryDirectory() as own, contextlib.chdir(own):
        handler = faults.Faults()
        handler.install(Path(own) / "window.log")
        RUNS.mkdir()
        settings = QSettings(str(Path(own) / "window.ini"), QSettings.Format.IniFormat)
        settings.setValue(TOUR_SEEN, True)  # it would stand before everything
        theming = Theming("light")
        theming.enlarge(asked.zoom)
        theming.apply()
        window = MainWindow(settings, theming, fault_handler=handler)
        window.resize(*asked.size)
        window.show()
        window.begin()
        pictures = Screenshots(window, out, LOOKS[asked.theme], most)
        try:
            wait(lambda: bool(window.backends), WAIT_S)
            settle(window, 2.0)  # for some readings of the machine
            pictures.take("start")
            if asked.live:
                measure(window, pictures, asked.seconds)
            else:
                # A copy stands in the list of runs, as it would after having been measured here.
                held = COMPARISON.open(run)
                model = title(held.header.job.models[0])
                shown = RUNS / (model if run == SAMPLE else run.name)
                shutil.copytree(run, shown)
                open_run(window, shown)
                if run == SAMPLE:
                    open_beside(window, RUNS)
            settle(window)
            pictures.pages()
        finally:
            complaint = complaints(window)
            window.end()
            handler.uninstall()
            QWidget.deleteLater(window)
    for path in pictures.taken:
        print(f"{path}  {path.stat().st_size / 1e3:,.0f} kB")
    if complaint:
        print(f"the window says: {complaint}", file=sys.stderr)
    return int(bool(complaint) or any(path.stat().st_size > most for path in pictures.taken))


if __name__ == "__main__":
    sys.exit(main())
