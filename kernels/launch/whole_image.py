"""Convolutions, with or without a pool, whose image and weights both fit into the shared memory of a block:
how the work is shared among blocks and threads (`fit`, by an estimate), and the launch shapes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kernels.errors import UnsupportedError
from kernels.estimates.fitted_device import MULTIPROCESSORS, RESIDENT, SCHEDULERS, THREADS_RESIDENT
from kernels.header import Define
from kernels.launch.core import MAX_X, Launch, Pack, shape
from kernels.launch.direct import shapes
from kernels.occupancy import REGISTERS, SHARED_NBYTES, WARP, ceil
from kernels.ops import Scalar, code
from kernels.ops.conv import Conv
from kernels.ops.conv_pool import ConvPool
from kernels.registry import Rung

FOUR = 4  # maps a thread: as many weights as one load from shared memory brings
MOST_SUMS = 64  # a thread: more would not stay in registers
_MAPS = (4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 52, 64, 96, 128)
_BANDS = (1, 2, 3, 4, 6)
_DOWN = (1, 2, 3, 4, 6, 8)
_ROUNDS = (1, 2, 3, 4)
_THREADS = (64, 512)


class Cell(NamedTuple):
    """Outputs of the convolution to one of y: a pool's window."""

    h: int
    w: int


class BlockShare(NamedTuple):
    """What a block does of an image: `maps` maps of a group, `band` rows of y, `down` outputs a thread, one
    below the other; `shares` threads share the channels of a sum."""

    maps: int
    band: int
    down: int
    shares: int
    threads: int


class Curves(NamedTuple):
    """Whether the outputs of the convolution, and those of the pool, go through a tanh or a sigmoid: many
    instructions each."""

    between: bool
    after: bool


_NO_CURVES = Curves(False, False)


# The estimate's constants are fitted to 1,330 launches of three small networks' layers, with their pools and
# without, at 1 to 1,024 images, on one H200.
_OTHER_REGISTERS = 79  # of a thread, beside its sums and the rows that it sees
_START_CLOCKS = 2300  # before a block copies
_PIXEL_CLOCKS = 66  # an element that a thread copies, its address included
_WEIGHTS_CLOCKS = 43  # 16 bytes of weights that it copies
_COPIES_AT_ONCE = 16  # warps whose copies hide each other's
_WAIT = 1.2  # clocks an instruction of a warp that has its multiprocessor to itself
_LOAD_WAIT = 5.9  # and an access to shared memory
_WEIGHTS_LOAD = 0.15  # of an access that brings pixels
_PUT, _CURVE, _ADD = 33, 81, 11  # instructions: to write an output, for a tanh or sigmoid, to add a share


@functools.lru_cache(maxsize=4096)
def fit(p: Conv, cell: Cell, curves: Curves = _NO_CURVES) -> BlockShare | None:
    """What should take least time; None where nothing fits into shared memory."""
    return min(block_shares(p, cell), key=lambda share: clocks(p, cell, share, curves), default=None)


def block_shares(p: Conv, cell: Cell) -> Iterator[BlockShare]:
    """The shares that are looked at."""
    channels, outputs, out_h, out_w = p.c // p.group, p.m // p.group, p.out_h // cell.h, p.out_w // cell.w
    all_maps = [maps for maps in _MAPS if maps < outputs + FOUR]
    shares_found = set()
    for maps, parts, down in itertools.product(all_maps, _BANDS, _DOWN):
        band = ceil(out_h, parts)
        if down > band or (down > 1 and FOUR * down * cell.h * cell.w > MOST_SUMS):
            continue
        for shares in sorted({ceil(channels, ceil(channels, s)) for s in (1, 2, 3, 6)}) if down == 1 else [1]:
            work = ceil(band, down) * out_w * (maps // FOUR) * shares
            for rounds in _ROUNDS:
                threads = min(max(ceil(ceil(work, rounds), WARP) * WARP, _THREADS[0]), _THREADS[1])
                shares_found.add(BlockShare(maps, band, down, shares, threads))
    return (share for share in sorted(shares_found) if nbytes(p, cell, share) <= SHARED_NBYTES)


def clocks(p: Conv, cell: Cell, share: BlockShare, curves: Curves = _NO_CURVES) -> float:
    """The estimate: a multiprocessor works for its blocks in turn once the first has begun, and no round of
    blocks that lie on it together is shorter than one block by itself."""
    channels, outputs, out_h, out_w = p.c // p.group, p.m // p.group, p.out_h // cell.h, p.out_w // cell.w
    blocks = p.n * p.group * ceil(outputs, share.maps) * ceil(out_h, share.band)
    cells = share.down * cell.h * cell.w
    sums, seen = FOUR * cells, _seen(p, cell, share.down)
    taps = ceil(channels, share.shares) * p.kh * p.kw

    items = ceil(share.band, share.down) * out_w * (share.maps // FOUR)  # a thread's work each
    rounds, warps = ceil(items * share.shares, share.threads), share.threads // WARP
    pixels, weights = _accesses(replace(p, n=1), cell, share)
    accesses = cell.w * seen / p.kh * pixels + weights * _WEIGHTS_LOAD
    of_tap = sums + cell.w * (1 + seen / p.kh)
    multiplying = rounds * taps * warps * max(of_tap / SCHEDULERS, accesses)

    ends = FOUR * share.down * (_PUT + (_CURVE if curves.after else 0)) + sums * (
        _CURVE if curves.between else 1
    )
    last_rounds, last_warps = ceil(items, share.threads), min(warps, ceil(items, WARP))
    ending = last_rounds * ends * last_warps / SCHEDULERS
    if share.shares > 1:
        ending += _ADD * cells * (share.shares * last_warps + warps) / SCHEDULERS

    image = channels * rows(p, cell, share) * columns(p, cell)
    filters = channels * p.kh * p.kw * share.maps // FOUR
    copying = _PIXEL_CLOCKS * ceil(image, share.threads) + _WEIGHTS_CLOCKS * ceil(filters, share.threads)
    waiting = rounds * taps * (of_tap * _WAIT + accesses * _LOAD_WAIT) + 2 * last_rounds * ends * _WAIT
    alone = _START_CLOCKS + copying + max(multiplying + ending, waiting)

    registers = share.threads * (_OTHER_REGISTERS + sums + seen)
    shared = nbytes(p, cell, share) + RESIDENT.shared_reserved
    resident = min(
        THREADS_RESIDENT // share.threads, RESIDENT.shared_nbytes // shared, REGISTERS // registers
    )
    queue = ceil(blocks, MULTIPROCESSORS)
    busy = multiplying + ending + copying * warps / _COPIES_AT_ONCE
    return max(_START_CLOCKS + copying + queue * busy, ceil(queue, max(1, resident)) * alone)


@functools.lru_cache(maxsize=16384)
def _accesses(p: Conv, cell: Cell, share: BlockShare) -> tuple[float, float]:
    """How often, in the mean of a block's warps, a load of pixels takes its turn at a bank of shared memory,
    and how many quarters of the maps a warp's threads have."""
    channels, out_w = p.c // p.group, p.out_w // cell.w
    apart = cell.w * p.stride_w
    pitch = ceil(columns(p, cell), apart) * apart
    strips = ceil(share.band, share.down) * out_w
    work = strips * (share.maps // FOUR)
    e = np.arange(min(share.threads, work * share.shares))
    of, quad, strip = e // work, e % work // strips, e % strips
    row = strip // out_w * share.down * cell.h * p.stride_h
    place = (of * ceil(channels, share.shares) * rows(p, cell, share) + row) * pitch + strip % out_w
    warp, count = e // WARP, ceil(len(e), WARP)
    # Pairs and triples as numbers: sorted a column at a time they take several times as long.
    beyond = int(place.max()) + 1
    asked_warp, places = np.divmod(np.unique(warp * beyond + place), beyond)
    turns = np.bincount(asked_warp * WARP + places % WARP, minlength=count * WARP).reshape(count, WARP)
    quads = np.unique((warp * share.shares + of) * (share.maps // FOUR) + quad)
    return float(turns.max(1).mean()), len(quads) / count


def nbytes(p: Conv, cell: Cell, share: BlockShare) -> int:
    """Shared memory of a block: the image, the weights, and what is shared of the sums."""
    channels, out_w = p.c // p.group, p.out_w // cell.w
    pitch = ceil(columns(p, cell), cell.w * p.stride_w) * cell.w * p.stride_w
    floats = channels * rows(p, cell, share) * pitch + channels * p.kh * p.kw * share.maps
    if share.shares > 1:
        floats += share.shares * share.band * out_w * share.maps * cell.h * cell.w
    return 4 * floats


def _seen(p: Conv, cell: Cell, down: int) -> int:
    """Rows of the padded image that `down` outputs, one below the other, look at."""
    return (down * cell.h - 1) * p.stride_h + (p.kh - 1) * p.dilation_h + 1


def rows(p: Conv, cell: Cell, share: BlockShare) -> int:
    """Of the padded image, as far down as the last thread of a band looks."""
    return _seen(p, cell, ceil(share.band, share.down) * share.down)


def columns(p: Conv, cell: Cell) -> int:
    """Of the padded image, as far as the last output looks."""
    return (p.out_w // cell.w * cell.w - 1) * p.stride_w + (p.kw - 1) * p.dilation_w + 1


_MOST_BLOCKS = 8 * MULTIPROCESSORS  # beyond which a block takes several images
_CURVED = ("tanh", "sigmoid")


@shape
def conv_whole_image(params: Conv, rung: Rung) -> Launch:
    """Blocks of THREADS threads an image, MAPS maps of a group and BAND rows of y; a thread computes DOWN
    outputs, one below the other, in four maps. Few images are shared among more blocks, a few maps and rows
    each, and SHARES threads share the channels of a sum. grid = (images, groups · parts of the maps, bands);
    the weights are packed as (group, part, taps, MAPS)."""
    curves = Curves(params.activation in _CURVED, False)
    return _launch(rung, params, Cell(1, 1), curves, params.scalars(), {})


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
    if FOUR * cell.h * cell.w > MOST_SUMS:
        raise UnsupportedError(
            f"{rung.label} has a thread compute a window in {FOUR} maps, at most {MOST_SUMS} sums, and a "
            f"window of {cell.h}×{cell.w} takes {FOUR * cell.h * cell.w}"
        )
    defines: dict[str, Define] = {
        "KIND": code("POOL", pool.kind),
        "BETWEEN": code("ACTIVATION", conv.activation),
        "AFTER": code("ACTIVATION", pool.activation),
        "OUT_H": pool.out_h,
        "OUT_W": pool.out_w,
    }
    curves = Curves(conv.activation in _CURVED and pool.kind != "max", pool.activation in _CURVED)
    return _launch(rung, conv, cell, curves, params.scalars(), defines)


def _launch(
    rung: Rung, p: Conv, cell: Cell, curves: Curves, scalars: tuple[Scalar, ...], defines: dict[str, Define]
) -> Launch:
    out_h, outputs = p.out_h // cell.h, p.m // p.group
    share = fit(p, cell, curves)
    if share is None:
        least = nbytes(p, cell, BlockShare(FOUR, 1, 1, 1, 0))
        raise UnsupportedError(
            f"{rung.label} keeps an image and the weights of {FOUR} maps in 48 KB of shared memory, and "
            f"here a row of outputs alone takes {ceil(least, 1 << 10)} KB"
        )
    fitted: dict[str, Define] = {
        "BAND": share.band,
        "ROWS": rows(p, cell, share),
        "COLUMNS": columns(p, cell),
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


def pack(weight: np.ndarray, group: int, maps: int) -> np.ndarray:
    """Weights (m, taps…) as (group, part, taps, maps): zeros stand for maps beyond a group's last."""
    per_group = weight.reshape(group, weight.shape[0] // group, -1)
    parts = ceil(per_group.shape[1], maps)
    padded = np.zeros((group, parts * maps, per_group.shape[2]), weight.dtype)
    padded[:, : per_group.shape[1]] = per_group
    return padded.reshape(group, parts, maps, -1).transpose(0, 1, 3, 2)
