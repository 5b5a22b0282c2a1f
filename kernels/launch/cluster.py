"""The launch shape of products whose sums are shared among the blocks of a cluster."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

from kernels.estimates.fitted_device import MULTIPROCESSORS, RESIDENT, SCHEDULERS, THREADS_RESIDENT
from kernels.launch.core import Launch, shape
from kernels.occupancy import MOST_REGISTERS_A_THREAD, REGISTERS, WARP, ceil
from kernels.ops.gemm import Gemm
from kernels.registry import Rung


@shape
def gemm_cluster(params: Gemm, rung: Rung) -> Launch:
    """A cluster of PARTS blocks of THREADS threads computes ROWS × COLUMNS outputs. A thread takes every
    (PARTS · THREADS)th four steps of the sum, which is LENGTH long. grid = (columns · PARTS, rows)."""
    spread = fit(params.m, params.n, params.k)
    grid = (ceil(params.n, spread.columns) * spread.parts, ceil(params.m, spread.rows), 1)
    defines = {name.upper(): value for name, value in spread._asdict().items()} | {"LENGTH": params.k}
    return Launch(grid, (spread.threads, 1, 1), params.scalars(), defines=defines)


# -------------------------------------------------------------------------------------------------- cluster

# How products whose sums are shared among the blocks of a cluster are shared out.


_FOUR = 4  # steps of the sum that a thread takes at a time
_ROWS, _COLUMNS = (4, 8, 13, 16), (4, 8)
_PARTS = (1, 2, 4, 8)  # blocks of a cluster, as many as every device grants
_THREADS = (32, 64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512)


class Spread(NamedTuple):
    """A cluster's piece of y, and who computes it: `parts` blocks of `threads` threads."""

    rows: int
    columns: int
    parts: int
    threads: int


@functools.lru_cache(maxsize=4096)
def fit(m: int, n: int, k: int) -> Spread:
    """The spread that should take least time."""
    return min(spreads(k), key=lambda spread: clocks(spread, m, n, k))


def spreads(k: int) -> Iterator[Spread]:
    """The spreads that are considered: at least one sum for each lane, no more blocks than steps of the sum,
    and no more threads than registers suffice for."""
    for spread in itertools.starmap(Spread, itertools.product(_ROWS, _COLUMNS, _PARTS, _THREADS)):
        few = spread.rows * spread.columns < WARP
        idle = spread.parts > 1 and ceil(k, _FOUR) <= (spread.parts // 2) * spread.threads
        if (
            not few
            and not idle
            and _registers(spread) <= min(MOST_REGISTERS_A_THREAD, REGISTERS // spread.threads)
        ):
            yield spread


def _registers(spread: Spread) -> int:
    """Registers of a thread: its sums, and 16 bytes for each of its rows, its columns and the next
    columns."""
    return spread.rows * spread.columns + 4 * (spread.rows + 2 * spread.columns) + 28


# The estimate's constants are fitted to 632 launches of layers of small networks and of AlexNet, at 1 to 128
# rows, on one H200.
_GROUPS, _OF_A_GROUP = 8, 13  # of multiprocessors, and how many of a group a cluster may lie on
_START_CLOCKS, _NEXT_START = 2500, 1.4  # of the first blocks, and how much of that of each round that follows
_NBYTES_A_CLOCK = 67  # to a multiprocessor from the second cache
_TRIP_CLOCKS = 400  # from memory to a register
_MULTIPLY, _PASS = (
    2.6,
    0.36,
)  # clocks of a scheduler: a multiply-add, its share of loads included, and an addition
_WAIT = 4.1  # clocks a multiply-add of a warp that has its multiprocessor to itself
_WARP_CLOCKS = 4.6  # for each warp of a block whose sums are added
_MEETING_CLOCKS, _PART_CLOCKS = 770, 49  # of a cluster, and for each of its blocks


def clocks(spread: Spread, m: int, n: int, k: int) -> float:
    """The estimate in cycles: the time of a multiprocessor for reading or for computing, whichever is longer.
    No round of blocks is shorter than one block alone."""
    blocks = ceil(m, spread.rows) * ceil(n, spread.columns) * spread.parts
    sums, warps = spread.rows * spread.columns, spread.threads // WARP
    at_once = spread.parts * spread.threads
    reads = ceil(k, _FOUR) / at_once  # of a thread, in the mean
    trips = ceil(ceil(k, _FOUR), at_once)

    read = 16 * (spread.rows + spread.columns) * reads * spread.threads / _NBYTES_A_CLOCK
    of_a_read = 4 * sums * _MULTIPLY + spread.rows + spread.columns
    busy = max(read, warps * (reads * of_a_read + 4 * sums * _PASS) / SCHEDULERS)
    alone = (
        _TRIP_CLOCKS + trips * max(_TRIP_CLOCKS, 4 * sums * _WAIT) + 3 * sums * _PASS + _WARP_CLOCKS * warps
    )
    alone += _MEETING_CLOCKS + _PART_CLOCKS * spread.parts if spread.parts > 1 else 0

    waves = ceil(blocks, _resident(spread))
    queue = ceil(blocks, MULTIPROCESSORS)
    started = _START_CLOCKS * (1 + _NEXT_START * (waves - 1))
    return started + max(queue * busy + _TRIP_CLOCKS, waves * max(alone, busy))


def _resident(spread: Spread) -> int:
    """Blocks that run on the device at the same time: whole clusters in a group of multiprocessors."""
    registers = _registers(spread) * spread.threads
    blocks = min(RESIDENT.blocks, THREADS_RESIDENT // spread.threads, REGISTERS // registers)
    if spread.parts == 1:
        return blocks * MULTIPROCESSORS
    return _GROUPS * (max(spread.parts, blocks * _OF_A_GROUP) // spread.parts) * spread.parts
