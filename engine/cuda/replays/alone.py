"""A pass that is one kernel, launched by a call of the driver: no graph of one node, no words of Python's.

Launching a pass of a few microseconds and waiting for it takes longer than the pass. Whether a launch is
done sooner than a graph is a machine's own, so both are tried where a session is made.
"""

from __future__ import annotations

import ctypes
import functools
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from engine.cuda.replays.overlap import Arguments
from engine.cuda.stream import Stream
from engine.machine import driver
from kernels.launch import Stage

GAIN = 0.02  # of a pass launched and waited for, below which a difference is noise
_LAPS, _WARM = 60, 10  # so many of each in turn, the first of which warm up
# What cuLaunchKernel takes.
_TAKES: list[Any] = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]


def launching(kernel: Any, stage: Stage, arguments: Sequence[Any], stream: int) -> Callable[[], None] | None:
    """What starts this stage on the stream of that address; None where the driver cannot be called.
    kernel: a cupy.RawKernel. The function called raises RuntimeError with CUDA's number of the error."""
    try:
        launch = ctypes.CDLL(driver.LIBRARY).cuLaunchKernel
    except (OSError, AttributeError):
        return None
    launch.argtypes = _TAKES
    grid, block = ((*size, 1, 1)[:3] for size in (stage.grid, stage.block))
    held = Arguments(arguments)  # the driver reads them at each launch, where they lie
    given = (int(kernel.kernel.ptr), *grid, *block, stage.shared_nbytes, stream, held.address, None)
    return functools.partial(_start, launch, given, stage.function, held)


def _start(launch: Any, given: Sequence[Any], function: str, held: Arguments) -> None:
    if error := launch(*given):
        raise RuntimeError(f"CUDA error {error} when {function} was launched")


def sooner(stream: Stream, graph: Any, start: Callable[[], None]) -> bool:
    """Whether such a launch is done sooner than this graph of the same kernel, launched and waited for."""

    def lap(work: Callable[[], None]) -> int:
        began = time.perf_counter_ns()
        work()
        stream.synchronize()
        return time.perf_counter_ns() - began

    replay = functools.partial(graph.launch, stream.on)
    laps = [(lap(replay), lap(start)) for _ in range(_LAPS)][_WARM:]
    by_graph, by_launch = (statistics.median(column) for column in zip(*laps, strict=True))
    return by_launch < (1 - GAIN) * by_graph
