"""Many charts drawn side by side, by processes of their own: matplotlib takes half a second for each."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing.context import BaseContext
from pathlib import Path

import psutil

import bench
from bench.results.store import write_atomically
from bench.views.charts.definitions import Chart
from bench.views.drawing import draw
from bench.views.drawing.looks import PAGE, Look
from kernels.errors import InputError

FEW = 6  # charts, of one model and one more, that are drawn here about as soon as processes have started


def write(
    charts: Iterable[Chart],
    directory: Path,
    formats: Sequence[str] = draw.FORMATS,
    scale: float = 1.0,
    look: Look = PAGE,
) -> list[Path]:
    """Draw every chart into `directory` (made if need be), one file a format, whole or not at all.

    scale: of PNG, in pixels, over draw.DPI. Raises InputError on a format that is not in draw.FORMATS and
    where the folder cannot be written.
    """
    for name in formats:
        if name not in draw.FORMATS:
            raise InputError(f"{name!r} is not a chart format; there are {', '.join(draw.FORMATS)}")
    paths = []
    for chart, drawn in rendered(list(charts), formats, scale, look):
        for name, data in drawn.items():
            path = Path(directory) / f"{chart.name}.{name}"
            write_atomically(path, data)
            paths.append(path)
    return paths


def rendered(
    charts: Sequence[Chart], formats: Sequence[str], scale: float = 1.0, look: Look = PAGE
) -> Iterator[tuple[Chart, dict[str, bytes]]]:
    """Each chart, in order, with its bytes by format (bench.views.drawing.draw.render)."""
    each = [(chart, name) for chart in charts for name in formats]
    workers = min(len(each), cores())
    if workers <= 1 or (len(charts) <= FEW and not expected()):
        yield from ((chart, draw.render(chart, formats, scale, look)) for chart in charts)
        return
    with pool(workers) as processes:
        # Format by format: a PDF takes as long as the two others.
        made = processes.map(_one, each, [scale] * len(each), [look] * len(each))
        for chart in charts:
            yield chart, {name: next(made) for name in formats}


def _one(of: tuple[Chart, str], scale: float, look: Look) -> bytes:
    chart, name = of
    return draw.render(chart, (name,), scale, look)[name]


# Where so many cores are, a process that loads matplotlib is in nobody's way.
ENOUGH_CORES = 4
_expected = threading.Event()


def expect() -> None:
    """Charts will be drawn later: what draws them is loaded now, beside what is done until then, where there
    are cores enough for both."""
    if cores() >= ENOUGH_CORES and _forks():
        from multiprocessing import forkserver

        _context()
        with suppress(OSError), _found():  # else it is loaded when it is needed
            forkserver.ensure_running()
            _expected.set()


@contextmanager
def _found() -> Iterator[None]:
    """Whom we start finds this program wherever the user stands: what is to be loaded ahead is named by
    module, the server has no path of ours, and what it does not find it passes over in silence."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(Path(bench.__file__).parents[1]), before)))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def expected() -> bool:
    """Whether processes are there at once."""
    return _expected.is_set()


def pool(workers: int) -> ProcessPoolExecutor:
    """So many processes that have nothing of this one."""
    return ProcessPoolExecutor(workers, mp_context=_context(), initializer=_deaf)


def cores() -> int:
    """How many may draw at once."""
    return psutil.cpu_count(logical=False) or 1


def _forks() -> bool:
    return "forkserver" in multiprocessing.get_all_start_methods()


@cache
def _context() -> BaseContext:
    """Not forked off this process: what else it runs would be in them too."""
    if not _forks():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # What the main module has loaded each of them loads again.
    ours = [name for name in sys.modules if name == "typer" or name.startswith("bench.commands.")]
    context.set_forkserver_preload([*ours, "bench.views.drawing.draw_ready"])
    return context


def _deaf() -> None:
    """Ctrl-C is heard by the process that waits for this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
