"""The processes that draw charts, loaded ahead where charts are to be drawn later."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing.context import BaseContext
from pathlib import Path

import psutil

import bench

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
