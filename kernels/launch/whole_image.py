"""The launch shape of convolutions, with a pool or without, whose image and weights both fit into the shared
memory of a block."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kernels.errors import UnsupportedError
from kernels.launch.core import MAX_X, Launch, Pack, ceil, shape
from kernels.launch.direct import shapes
from kernels.nvrtc import Define, code
from kernels.params import Conv, ConvPool
from kernels.registry import Rung
from kernels.scalars import SCALARS, Scalar

_FOUR = 4  # maps a thread: as many weights as one load from shared memory brings
_WARP = 32
_SHARED_NBYTES = 48 << 10  # of a block, without asking the device for more
_MOST_SUMS = 64  # a thread: more would not stay in registers
_MOST_BLOCKS = 8 * 132  # beyond which a block takes several images
_MAPS = (4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 52, 64, 96, 128)
_BANDS = (1, 2, 3, 4, 6)
_DOWN = (1, 2, 3, 4, 6, 8)
_ROUNDS = (1, 2, 3, 4)
_THREADS = (64, 512)


class Cell(NamedTuple):
    """Outputs of the convolution to one of y: a pool's window."""

    h: int
    w: int


class Share(NamedTuple):
    """What a block does of an image: `maps` maps of a group, `band` rows of y, `down` outputs a thread, one
    below the other; `shares` threads share the channels of a sum."""

    maps: int
    band: int
    down: int
    shares: int
    threads: int


@shape
def conv_whole_image(params: Conv, rung: Rung) -> Launch:
    """Blocks of THREADS threads an image, MAPS maps of a group and BAND rows of y; a thread computes DOWN
    outputs, one below the other, in four maps. Few images are shared among more blocks, a few maps and rows
    each, and SHARES threads share the channels of a sum. grid = (images, groups · parts of the maps, bands);
    the weights are packed as (group, part, taps, MAPS)."""
    return _launch(rung, params, Cell(1, 1), SCALARS["conv"](params), {})


@shape
def conv_pool_whole_image(params: ConvPool, rung: Rung) -> Launch:
    """As conv_whole_image, an output being CELL_H × CELL_W of the convolution's. Pools whose windows lie side
    by side alone."""
    conv, pool = params.conv, params.pool
    apart = (pool.kh, pool.kw) != (pool.stride_h, pool.stride_w)
    beyond = pool.out_h * pool.kh > pool.h or pool.out_w * pool.kw > pool.w
    padded = pool.pad_top or pool.pad_left
    dilated = (pool.dilation_h, pool.dilation_w) != (1, 1)
    if apart or beyond or padded or dilated:
        raise UnsupportedError(
            f"{rung.label} pools windows that lie side by side within the image, and here they overlap, "
            "leave gaps or reach beyond it"
        )
    cell = Cell(pool.kh, pool.kw)
    if _FOUR * cell.h * cell.w > _MOST_SUMS:
        raise UnsupportedError(
            f"{rung.label} has a thread compute a window in {_FOUR} maps, at most {_MOST_SUMS} sums, and a "
            f"window of {cell.h}×{cell.w} takes {_FOUR * cell.h * cell.w}"
        )
    defines: dict[str, Define] = {
        "KIND": code("POOL", pool.kind),
        "BETWEEN": code("ACTIVATION", conv.activation),
        "AFTER": code("ACTIVATION", pool.activation),
        "OUT_H": pool.out_h,
        "OUT_W": pool.out_w,
    }
    return _launch(rung, conv, cell, SCALARS["conv_pool"](params), defines)


def _launch(
    rung: Rung, p: Conv, cell: Cell, scalars: tuple[Scalar, ...], defines: dict[str, Define]
) -> Launch:
    out_h, outputs = p.out_h // cell.h, p.m // p.group
    share = fit(p, cell)
    if share is None:
        least = nbytes(p, cell, Share(_FOUR, 1, 1, 1, 0))
        raise UnsupportedError(
            f"{rung.label} keeps an image and the weights of {_FOUR} maps in 48 KB of shared memory, and "
            f"here a row of outputs alone takes {ceil(least, 1 << 10)} KB"
        )
    fitted: dict[str, Define] = {
        "BAND": share.band,
        "ROWS": _rows(p, cell, share),
        "COLUMNS": _columns(p, cell),
        "THREADS": share.threads,
        "DOWN": share.down,
        "CELL_H": cell.h,
        "CELL_W": cell.w,
        "MAPS": share.maps,
        "SHARES": share.shares,
    }
    return Launch(
        (min(p.n, _MOST_BLOCKS, MAX_X), p.group * ceil(outputs, share.maps), ceil(out_h, share.band)),
        (share.threads, 1, 1),
        scalars,
        defines=shapes(p) | fitted | defines,
        packed={1: Pack(pack, (p.group, share.maps))},
    )


# The estimate's constants are counted from the kernel's instructions for a device of 132 multiprocessors.
_MULTIPROCESSORS = 132
_SCHEDULERS = 4  # of a multiprocessor, each starting an instruction of a warp a clock
_THREADS_RESIDENT = 2048
_REGISTERS = 65536
_SHARED_RESIDENT = 227 << 10
_START_CLOCKS = 1500  # before a block multiplies
_COPY_CLOCKS = 8  # an element that a thread brings to shared memory
_WAIT = 1.5  # clocks an instruction of a warp that has its multiprocessor to itself


@functools.lru_cache(maxsize=4096)
def fit(p: Conv, cell: Cell) -> Share | None:
    """What should take least time; None where nothing fits into shared memory."""
    return min(ways(p, cell), key=lambda share: clocks(p, cell, share), default=None)


def ways(p: Conv, cell: Cell) -> Iterator[Share]:
    """The shares that are looked at."""
    channels, outputs, out_h, out_w = p.c // p.group, p.m // p.group, p.out_h // cell.h, p.out_w // cell.w
    all_maps = [maps for maps in _MAPS if maps < outputs + _FOUR]
    found = set()
    for maps, parts, down in itertools.product(all_maps, _BANDS, _DOWN):
        band = ceil(out_h, parts)
        if down > band or (down > 1 and _FOUR * down * cell.h * cell.w > _MOST_SUMS):
            continue
        for shares in sorted({ceil(channels, ceil(channels, s)) for s in (1, 2, 3, 6)}) if down == 1 else [1]:
            work = ceil(band, down) * out_w * (maps // _FOUR) * shares
            for rounds in _ROUNDS:
                threads = min(max(ceil(ceil(work, rounds), _WARP) * _WARP, _THREADS[0]), _THREADS[1])
                found.add(Share(maps, band, down, shares, threads))
    return (share for share in sorted(found) if nbytes(p, cell, share) <= _SHARED_NBYTES)


def clocks(p: Conv, cell: Cell, share: Share) -> float:
    """The estimate: a multiprocessor multiplies for its blocks in turn once the first has begun, and no round
    of blocks that lie on it together is shorter than one block by itself."""
    channels, outputs, out_h, out_w = p.c // p.group, p.m // p.group, p.out_h // cell.h, p.out_w // cell.w
    work = ceil(share.band, share.down) * out_w * (share.maps // _FOUR) * share.shares
    rounds, warps = ceil(work, share.threads), share.threads // _WARP
    blocks = p.n * p.group * ceil(outputs, share.maps) * ceil(out_h, share.band)
    sums = _FOUR * share.down * cell.h * cell.w
    taps = ceil(channels, share.shares) * p.kh * p.kw
    seen = _seen(p, cell, share.down)
    of_tap = sums + cell.w * (1 + seen / p.kh)  # instructions
    registers = share.threads * (40 + sums + seen)
    shared = nbytes(p, cell, share) + 1024
    resident = min(
        _THREADS_RESIDENT // share.threads, _SHARED_RESIDENT // shared, max(1, _REGISTERS // registers)
    )
    copied = channels * (_rows(p, cell, share) * _columns(p, cell) + p.kh * p.kw * share.maps / _FOUR)
    begun = _START_CLOCKS + copied / share.threads * _COPY_CLOCKS
    queue, instructions = ceil(blocks, _MULTIPROCESSORS), rounds * taps * of_tap
    alone = begun + max(instructions * _WAIT, instructions * warps / _SCHEDULERS)
    return max(begun + queue * instructions * warps / _SCHEDULERS, ceil(queue, resident) * alone)


def nbytes(p: Conv, cell: Cell, share: Share) -> int:
    """Shared memory of a block: the image, the weights, and what is shared of the sums."""
    channels, out_w = p.c // p.group, p.out_w // cell.w
    pitch = ceil(_columns(p, cell), cell.w * p.stride_w) * cell.w * p.stride_w
    floats = channels * _rows(p, cell, share) * pitch + channels * p.kh * p.kw * share.maps
    if share.shares > 1:
        floats += share.shares * share.band * out_w * share.maps * cell.h * cell.w
    return 4 * floats


def pack(weight: np.ndarray, group: int, maps: int) -> np.ndarray:
    """Weights (m, taps…) as (group, part, taps, maps): zeros stand for maps beyond a group's last."""
    per_group = weight.reshape(group, weight.shape[0] // group, -1)
    parts = ceil(per_group.shape[1], maps)
    padded = np.zeros((group, parts * maps, per_group.shape[2]), weight.dtype)
    padded[:, : per_group.shape[1]] = per_group
    return padded.reshape(group, parts, maps, -1).transpose(0, 1, 3, 2)


def _seen(p: Conv, cell: Cell, down: int) -> int:
    """Rows of the padded image that `down` outputs, one below the other, look at."""
    return (down * cell.h - 1) * p.stride_h + (p.kh - 1) * p.dilation_h + 1


def _rows(p: Conv, cell: Cell, share: Share) -> int:
    """Of the padded image, as far down as the last thread of a band looks."""
    return _seen(p, cell, ceil(share.band, share.down) * share.down)


def _columns(p: Conv, cell: Cell) -> int:
    return (p.out_w // cell.w * cell.w - 1) * p.stride_w + (p.kw - 1) * p.dilation_w + 1
