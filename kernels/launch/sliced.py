"""The launch shape of products in which groups of threads of a block share a sum."""

from __future__ import annotations

import functools
from typing import NamedTuple

from kernels import packing
from kernels.estimates.fitted_device import MULTIPROCESSORS
from kernels.launch.core import Launch, Pack, in_parts, shape
from kernels.occupancy import SHARED_NBYTES, ceil
from kernels.ops.gemm import Gemm
from kernels.registry import Rung

_WEIGHT = 1  # the place of the weights among the inputs
_ADDED = 32  # outputs of a block that adds parts


def tiles(rung: Rung) -> tuple[SlicedTile, ...]:
    """The tiles that a rung on this launch shape may be given."""
    return SLICED_TILES if rung.launch == "gemm_sliced" else ()


@shape
def gemm_sliced(params: Gemm, rung: Rung) -> Launch:
    """A block a tile of y, the tile chosen out of SLICED_TILES, tiles in grid.x, column first; the sum in
    PARTS parts, a block each (grid.y): part p writes its (m, n) sums to element p · m · n of the scratch
    memory, and the stage `gemm_reduce` adds them in order, 32 outputs a block of four warps. With PARTS = 1
    the first stage writes y itself. b is packed: a row a column of y, whole tiles of weights and zeros."""
    tile, parts = fit(params.m, params.n, params.k)
    grid = (ceil(params.m, tile.m) * ceil(params.n, tile.n), parts, 1)
    packed = {_WEIGHT: Pack(packing.tiled_rows, (params.trans_b, tile.n, tile.k))}
    return in_parts(params, grid, tile.threads, parts, tile.defines, packed, _ADDED)


# --------------------------------------------------------------------------------------------------- sliced

# How products whose blocks share their sums between groups of threads are shared out.


_ACROSS = 8  # threads of a group, beside each other and one below the other
_STEPS = 4  # of the sum that a slice takes at a time: one load from shared memory
_MOST_PARTS = 128
_MOST_PARTIAL_NBYTES = 64 << 20


class SlicedTile(NamedTuple):
    """A block's tile, thread_m × thread_n outputs a thread, by `slices` groups of threads."""

    thread_m: int
    thread_n: int
    slices: int

    @property
    def m(self) -> int:
        return _ACROSS * self.thread_m

    @property
    def n(self) -> int:
        return _ACROSS * self.thread_n

    @property
    def k(self) -> int:
        return _STEPS * self.slices

    @property
    def threads(self) -> int:
        return _ACROSS * _ACROSS * self.slices

    @property
    def stages(self) -> int:
        """Tiles of both factors in shared memory at once."""
        return min(4, SHARED_NBYTES // (4 * (self.m + self.n) * (self.k + _STEPS)))

    @property
    def defines(self) -> dict[str, int]:
        return {
            "THREAD_M": self.thread_m,
            "THREAD_N": self.thread_n,
            "SLICES": self.slices,
            "STAGES": self.stages,
        }


SLICED_TILES = (
    *(SlicedTile(thread_m, 8, 4) for thread_m in (8, 7, 6, 5)),
    *(SlicedTile(thread_m, 8, 8) for thread_m in (4, 3, 2)),
)

# The estimate's constants are counted from the kernel's instructions; no launch was timed to fit them.
_CLOCKS_A_US = 1_800
_MULTIPLIED_A_CLOCK = 128  # by a multiprocessor that does nothing else
_LOAD_CLOCKS = 1.0  # of a warp's 16 bytes a thread from shared memory, beside the multiplying
_NBYTES_A_CLOCK = 32  # to a multiprocessor from the second cache
_TRIP_CLOCKS = 800  # from memory to shared memory
_START_US = 3.0
_SECOND_KERNEL_US = 0.8
_MOVED = 3.26e6  # bytes a microsecond that partial sums are written and read at


@functools.lru_cache(maxsize=4096)  # a plan asks several times for each step
def fit(m: int, n: int, k: int) -> tuple[SlicedTile, int]:
    """The tile and the number of parts that should take least time."""
    choices = [
        (tile, parts)
        for tile in SLICED_TILES
        for parts in range(1, _MOST_PARTS + 1)
        if parts == 1 or (ceil(k, tile.k) >= 2 * parts and 4 * parts * m * n <= _MOST_PARTIAL_NBYTES)
    ]
    return min(choices, key=lambda choice: microseconds(choice[0], choice[1], m, n, k))


def microseconds(tile: SlicedTile, parts: int, m: int, n: int, k: int) -> float:
    """The estimate: a multiprocessor multiplies for its blocks in turn, no faster than tiles arrive, and no
    step is shorter than its share of an access to memory."""
    queue = ceil(ceil(m, tile.m) * ceil(n, tile.n) * parts, MULTIPROCESSORS)
    steps = ceil(ceil(k, tile.k), parts)
    resident = min(queue, 512 // tile.threads)
    multiplying = tile.m * tile.n * tile.k / _MULTIPLIED_A_CLOCK
    multiplying += _LOAD_CLOCKS * (tile.thread_m + tile.thread_n) * tile.threads / 32
    coming = 4 * (tile.m + tile.n) * tile.k / _NBYTES_A_CLOCK
    waiting = ceil(queue, resident) * _TRIP_CLOCKS / (tile.stages - 1)
    time = _START_US + steps * max(queue * multiplying, queue * coming, waiting) / _CLOCKS_A_US
    if parts > 1:
        time += _SECOND_KERNEL_US + 2 * 4 * parts * m * n / _MOVED
    return time
