"""Which tile a tiled product takes, and into how many parts its sum is cut: the least of an estimate.

The estimate knows the shape alone, and a device about as large as today's largest; it is the same everywhere,
so that a model runs the same kernels on every GPU. Its constants were fitted to 1,952 launches (96 layers of
AlexNet, LeNet-5 and the ECE 408 net on the likely tiles and parts) on an NVIDIA H200: what it picks takes
1.01 times the best of them in the mean, 1.22 times at worst.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from kernels.estimates.fitted_device import MULTIPROCESSORS
from kernels.occupancy import ceil


class Tile(NamedTuple):
    """A block's m × n outputs, thread_m × thread_n of them a thread, k steps of the sum at a time."""

    m: int
    n: int
    thread_m: int
    thread_n: int
    k: int = 16

    @property
    def threads(self) -> int:
        return (self.m // self.thread_m) * (self.n // self.thread_n)

    @property
    def defines(self) -> dict[str, int]:
        """As the rungs are compiled for it."""
        return {
            "TILE_M": self.m,
            "TILE_N": self.n,
            "THREAD_M": self.thread_m,
            "THREAD_N": self.thread_n,
            "TILE_K": self.k,
        }


# Each tile with the part of the device's multiplication rate that it reaches when there is work enough: a
# small one loads more elements a multiplication. A convolution needs a multiple of n threads, so that each
# gathers one pixel.
CONV_TILES: Mapping[Tile, float] = {
    Tile(64, 64, 4, 4): 0.42,
    Tile(32, 64, 4, 4): 0.36,
    Tile(32, 32, 4, 4): 0.29,
    Tile(16, 64, 4, 4): 0.27,
    Tile(8, 128, 4, 2): 0.17,
}
GEMM_TILES: Mapping[Tile, float] = {**CONV_TILES, Tile(64, 16, 4, 4): 0.27, Tile(16, 16, 2, 2): 0.12}
LARGE_CONV_TILES: Mapping[Tile, float] = {
    Tile(128, 128, 8, 8, 8): 0.50,
    Tile(96, 128, 6, 8, 8): 0.56,
    Tile(64, 128, 8, 8, 8): 0.57,
    Tile(128, 64, 8, 8, 8): 0.59,
    Tile(64, 64, 8, 8, 8): 0.51,
    Tile(64, 64, 4, 4): 0.40,
    Tile(32, 128, 4, 8): 0.45,
    Tile(32, 64, 4, 4): 0.36,
    Tile(16, 128, 4, 4): 0.28,
    Tile(8, 128, 4, 2): 0.17,
}
LARGE_GEMM_TILES: Mapping[Tile, float] = {
    Tile(128, 128, 8, 8, 8): 0.61,
    Tile(64, 128, 8, 8, 8): 0.61,
    Tile(128, 64, 8, 8, 8): 0.54,
    Tile(64, 64, 8, 8, 8): 0.51,
    Tile(64, 64, 4, 4): 0.33,
    Tile(32, 128, 8, 4): 0.48,
    Tile(32, 64, 4, 4): 0.33,
    Tile(16, 128, 8, 4): 0.30,
    Tile(16, 64, 4, 4): 0.26,
    Tile(8, 64, 2, 4): 0.22,
    Tile(128, 16, 4, 4): 0.30,
}
PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)

_RATE = 0.233  # millions of multiply-adds a microsecond and multiprocessor
_STEP_US = 0.651  # at least, for a tile to come from memory and through shared memory
_START_US = 3.43
_SECOND_KERNEL_US = 0.444
_MOVED = 3.26e6  # bytes a microsecond that partial sums are written and read at
# By outputs a thread, at least: the threads of a multiprocessor that registers have room for, and those that
# hide all waiting.
_THREADS = {48: (512, 272), 32: (768, 277), 0: (1024, 65)}
_MOST_PARTIAL_NBYTES = 64 << 20


def fit(
    tiles: Mapping[Tile, float], m: int, n: int, k: int, batch: int, parts: tuple[int, ...] = (1,)
) -> tuple[Tile, int]:
    """The tile and the number of parts (out of `parts`) that should take least time for `batch` products of
    m × k by k × n."""
    return _fit(tuple(tiles.items()), m, n, k, batch, parts)


@functools.lru_cache(maxsize=4096)  # a plan asks several times for each step
def _fit(
    rated: tuple[tuple[Tile, float], ...], m: int, n: int, k: int, batch: int, parts: tuple[int, ...]
) -> tuple[Tile, int]:
    choices = [
        (tile, rate, count)
        for tile, rate in rated
        for count in parts
        if count == 1 or _worth(tile, count, m, n, k, batch)
    ]
    tile, _, count = min(choices, key=lambda one: microseconds(one[0], one[1], m, n, k, batch, one[2]))
    return tile, count


def microseconds(tile: Tile, rate: float, m: int, n: int, k: int, batch: int, parts: int) -> float:
    """The estimate. A multiprocessor multiplies for all its blocks in turn, at less than its rate while they
    have too few threads to hide the waiting in; and no step of a block is shorter than one trip to memory."""
    blocks = batch * ceil(m, tile.m) * ceil(n, tile.n) * parts
    steps = ceil(ceil(k, tile.k), parts)
    outputs = tile.thread_m * tile.thread_n  # of one thread: what is independent within it hides waiting too
    most, enough = next(_THREADS[least] for least in _THREADS if outputs >= least)
    queue = ceil(blocks, MULTIPROCESSORS)
    resident = min(queue, max(1, most // tile.threads))
    busy = min(1.0, resident * tile.threads / enough)
    multiplying = queue * steps * tile.m * tile.n * tile.k / (_RATE * 1e6 * rate * busy)
    waiting = ceil(queue, resident) * steps * _STEP_US
    time = _START_US + max(multiplying, waiting)
    if parts > 1:
        time += _SECOND_KERNEL_US + 2 * 4 * parts * batch * m * n / _MOVED
    return time


def _worth(tile: Tile, parts: int, m: int, n: int, k: int, batch: int) -> bool:
    """Whether every part has a few steps, and the parts' sums fit into memory set aside for them."""
    return ceil(k, tile.k) >= 2 * parts and 4 * parts * batch * m * n <= _MOST_PARTIAL_NBYTES


# Warps of a block down and across, each with WARP_OUTPUTS: large blocks read fewer elements a multiplication.
_WARPS = ((4, 2), (2, 2), (4, 1), (2, 1), (1, 1))
WARP_OUTPUTS = (32, 64)
_MOST_WARPS, _ENOUGH_WARPS = 16, 6  # of 128 registers a lane on a multiprocessor; that hide all waiting


def fit_warps(m: int, n: int) -> tuple[int, int]:
    """The block of such warps whose multiplications should take the fullest multiprocessor least time. Not
    fitted to measured times: it counts blocks that are not whole, rounds that are not, and warps too few to
    hide waiting."""

    def time(down: int, across: int) -> float:
        rows, columns = WARP_OUTPUTS[0] * down, WARP_OUTPUTS[1] * across
        queue = ceil(ceil(m, rows) * ceil(n, columns), MULTIPROCESSORS)
        resident = min(queue, _MOST_WARPS // (down * across)) * down * across
        return queue * rows * columns / min(1.0, resident / _ENOUGH_WARPS)

    return min(_WARPS, key=lambda warps: time(*warps))
