"""Many charts drawn side by side, by processes of their own: matplotlib takes half a second for each."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import psutil

from bench import draw
from bench.charts.definitions import Chart

FEW = 6  # charts, of one model and one more, that are drawn here about as soon as processes have started


def rendered(
    charts: Sequence[Chart], formats: Sequence[str], scale: float = 1.0
) -> Iterator[tuple[Chart, dict[str, bytes]]]:
    """Each chart, in order, with its bytes by format (bench.draw.render)."""
    one = partial(draw.render, formats=formats, scale=scale)
    workers = min(len(charts), psutil.cpu_count(logical=False) or 1)
    if len(charts) <= FEW or workers == 1 or not formats:
        yield from ((chart, one(chart)) for chart in charts)
        return
    # Not forked: what else this process runs would be in them too.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_deaf) as pool:
        yield from zip(charts, pool.map(one, charts), strict=True)


def _deaf() -> None:
    """Ctrl-C is heard by the process that waits for this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
