"""The launch shape of products whose sums are shared among the blocks of a cluster."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

from kernels.launch.core import Launch, ceil, shape
from kernels.params import Gemm
from kernels.registry import Rung
from kernels.scalars import SCALARS

_FOUR = 4  # steps of the sum that a thread takes at a time
_WARP = 32
_ROWS, _COLUMNS = (4, 8, 16), (4, 8)
_PARTS = (1, 2, 4, 8)  # blocks of a cluster, as many as every device grants
_THREADS = (32, 64, 128, 256)


class Spread(NamedTuple):
    """A cluster's piece of y, and who computes it: `parts` blocks of `threads` threads."""

    rows: int
    columns: int
    parts: int
    threads: int


@shape
def gemm_cluster(params: Gemm, rung: Rung) -> Launch:
    """A cluster of PARTS blocks of THREADS threads ROWS × COLUMNS outputs; a thread takes every PARTS ·
    THREADS-th four steps of the sum. grid = (columns · PARTS, rows)."""
    spread = fit(params.m, params.n, params.k)
    grid = (ceil(params.n, spread.columns) * spread.parts, ceil(params.m, spread.rows), 1)
    defines = {name.upper(): value for name, value in spread._asdict().items()}
    return Launch(grid, (spread.threads, 1, 1), SCALARS["gemm"](params), defines=defines)


# The estimate's constants are counted from the kernel's instructions for a device of 132 multiprocessors.
_MULTIPROCESSORS = 132
_REGISTERS = 65536
_SCHEDULERS = 4
_NBYTES_A_CLOCK = 40  # to a multiprocessor from the second cache
_TRIP_CLOCKS = 900  # from memory to a register
_START_CLOCKS = 1500
_MEETING_CLOCKS = 800  # of a cluster


@functools.lru_cache(maxsize=4096)
def fit(m: int, n: int, k: int) -> Spread:
    """What should take least time."""
    return min(spreads(k), key=lambda spread: clocks(spread, m, n, k))


def spreads(k: int) -> Iterator[Spread]:
    """Those that are looked at: no more threads than have a step of the sum."""
    for spread in itertools.starmap(Spread, itertools.product(_ROWS, _COLUMNS, _PARTS, _THREADS)):
        few = spread.parts > 1 and ceil(k, _FOUR) <= (spread.parts // 2) * spread.threads
        if spread.rows * spread.columns >= _WARP and not few:
            yield spread


def clocks(spread: Spread, m: int, n: int, k: int) -> float:
    """The estimate: what a multiprocessor reads for its blocks, or what it computes for them, and the trips
    to memory that a block makes one after the other."""
    blocks = ceil(m, spread.rows) * ceil(n, spread.columns) * spread.parts
    sums, warps = spread.rows * spread.columns, spread.threads // _WARP
    trips = ceil(ceil(k, _FOUR), spread.parts * spread.threads)
    queue = ceil(blocks, _MULTIPROCESSORS)
    registers = spread.threads * min(255, sums + 4 * (spread.rows + spread.columns) + 30)
    resident = max(1, min(32, 2048 // spread.threads, _REGISTERS // registers))
    read = 16 * (spread.rows + spread.columns) * trips * spread.threads / _NBYTES_A_CLOCK
    computed = warps * (trips * (4 * sums + spread.rows + spread.columns) + 4 * sums) / _SCHEDULERS
    alone = trips * _TRIP_CLOCKS + 4 * sums + (_MEETING_CLOCKS if spread.parts > 1 else 0)
    return _START_CLOCKS + max(queue * max(read, computed), ceil(queue, resident) * alone)
