"""A convolution on tensor cores inside the one kernel: rows and steps of its instructions, and where they
lie."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from kernels import packing
from kernels.net.layers import Layer
from kernels.net.records import AS_CHANNELS, AS_NEIGHBOURS, AS_TF32, FRAGMENT, Buffer, Tile, Way
from kernels.occupancy import WARP, ceil
from kernels.ops.conv import Conv

COLUMNS = 8  # of an instruction
WORDS = 8  # steps of its sum, two values each in float16
_MOST_SUMS = 32  # of a lane
_KEPT_WORDS = 48  # of a lane's registers, for weights and where steps lie
_EACH = 100  # of a task, beside its instructions
_SHARED = 150  # of sums that warps share
_LEAST_SLABS = 3  # of a warp that shares them


def tile(layer: Layer, way: Way) -> Tile | None:
    """The tile that is likely to take least time; None where a lane has no room for its sums."""
    p = layer.params
    assert isinstance(p, Conv)
    return min(_tiles(layer, way), key=lambda tile: _cycles(layer, tile, way), default=None)


def _tiles(layer: Layer, way: Way) -> Iterator[Tile]:
    p, pool = layer.params, layer.pool
    assert isinstance(p, Conv)
    outputs = p.m // p.group
    cells = (
        ((pool.kh, pool.kw),) if pool else ((1, 1), (1, min(2, p.out_w)), (min(2, p.out_h), min(2, p.out_w)))
    )
    for down, across in dict.fromkeys(cells):
        joins = dict.fromkeys(itertools.product((1, down), (1, across)))
        every = range(8, ceil(outputs, 8) * 8 + 1, 8)
        for joined, many, kind in itertools.product(joins, every, _kinds(p, across, way)):
            if kind == AS_NEIGHBOURS and joined[1] * p.stride_w % 2:
                continue
            candidate = Tile(down, across, many, 1, True, joined, kind)
            if separate_outputs(candidate) * tiles(candidate) * 4 <= _MOST_SUMS:
                yield candidate
                if (slices := _slices(layer, candidate, way)) > 1:
                    yield replace(candidate, slices=slices)


def _kinds(p: Conv, across: int, way: Way) -> Iterator[int]:
    """The ways in which its images may lie."""
    if not way.halves:
        yield AS_TF32
        return
    if across * p.stride_w % 2 == 0:
        yield AS_NEIGHBOURS
    if p.group == 1 or p.c // p.group % 2 == 0:
        yield AS_CHANNELS


def _cycles(layer: Layer, tile: Tile, way: Way) -> float:
    """An estimate of its cycles: a warp's reads and instructions, one after the other."""
    p = layer.params
    assert isinstance(p, Conv)
    each = 2 * separate_outputs(tile) + 1.5 * separate_outputs(tile) * tiles(tile)
    each += (4 * tiles(tile) + 1, 1, 0)[weights_in_registers(p, tile)]
    rounds = ceil(_tasks(layer, tile, way), way.threads // WARP)
    shared = _SHARED * (tile.slices > 1)
    return rounds * (each * ceil(slabs(p, tile), tile.slices) + _EACH + shared + 10 * tile.down * tile.across)


def _tasks(layer: Layer, tile: Tile, way: Way) -> int:
    """Tasks of one block."""
    p = layer.params
    assert isinstance(p, Conv)
    return ceil(ceil(cells(layer, tile) * way.images, COLUMNS) * parts(p, tile) * p.group, way.ranks)


def _slices(layer: Layer, tile: Tile, way: Way) -> int:
    """How many warps compute parts of one sum."""
    p = layer.params
    assert isinstance(p, Conv)
    return min(way.threads // WARP // _tasks(layer, tile, way), slabs(p, tile) // _LEAST_SLABS)


def shared_floats(layer: Layer, tile: Tile, way: Way) -> int:
    """Floats of shared memory for the parts of sums that warps share."""
    return (tile.slices - 1) * _tasks(layer, tile, way) * separate_outputs(tile) * tiles(tile) * 4 * WARP


def cells(layer: Layer, tile: Tile) -> int:
    """Cells of an image."""
    high, wide = cells_of(layer, tile)
    return high * wide


def cells_of(layer: Layer, tile: Tile) -> tuple[int, int]:
    """Rows and columns of cells in an image."""
    p, pool = layer.params, layer.pool
    assert isinstance(p, Conv)
    return (pool.out_h, pool.out_w) if pool else (ceil(p.out_h, tile.down), ceil(p.out_w, tile.across))


def parts(p: Conv, tile: Tile) -> int:
    """In how many parts the maps of a group are."""
    return ceil(p.m // p.group, tile.many)


def separate_outputs(tile: Tile) -> int:
    """How many outputs of a cell are read separately."""
    return tile.down // tile.joined[0] * (tile.across // tile.joined[1])


def tiles(tile: Tile) -> int:
    """Rows of an instruction, in sixteens: joined outputs times `many` maps."""
    return ceil(tile.many // 8 * tile.joined[0] * tile.joined[1], 2)


def slabs(p: Conv, tile: Tile) -> int:
    """Slabs of the sum, of WORDS steps each."""
    return ceil(len(_under(p, tile)[0]) * len(_words(p, tile)) * _channels(p, tile), WORDS)


def weights_in_registers(p: Conv, tile: Tile) -> int:
    """Whether a lane can keep all weights (1), and also where their steps lie (2); else 0."""
    words = slabs(p, tile) * 4 * tiles(tile)
    if parts(p, tile) * p.group * tile.slices > 1 or words > _KEPT_WORDS:
        return 0
    return 2 if words + 2 * slabs(p, tile) <= _KEPT_WORDS else 1


def floats(p: Conv, tile: Tile) -> int:
    """Floats of the packed weights."""
    return p.group * parts(p, tile) * tiles(tile) * slabs(p, tile) * FRAGMENT


def _under(p: Conv, tile: Tile) -> tuple[list[int], list[int]]:
    """The rows and columns under any of the joined outputs, counted from a cell's first."""
    rows = {i * p.stride_h + r * p.dilation_h for i in range(tile.joined[0]) for r in range(p.kh)}
    columns = {j * p.stride_w + s * p.dilation_w for j in range(tile.joined[1]) for s in range(p.kw)}
    return sorted(rows), sorted(columns)


def _words(p: Conv, tile: Tile) -> list[int]:
    """The same columns in words of a row."""
    columns = _under(p, tile)[1]
    return sorted({c // 2 for c in columns}) if tile.kind == AS_NEIGHBOURS else columns


def _channels(p: Conv, tile: Tile) -> int:
    """Channels of a group, in words."""
    channels = p.c // p.group
    return ceil(channels, 2) if tile.kind == AS_CHANNELS else channels


def strides(p: Conv, tile: Tile, rows: int, row: int) -> tuple[int, int]:
    """The row and plane strides in values, at least as many as given, with which neighbouring steps lie in
    different banks of shared memory."""
    each = 2 if tile.kind == AS_NEIGHBOURS else 1
    high, wide = len(_under(p, tile)[0]), len(_words(p, tile))
    words = ceil(row, each)
    words += (wide - words) % 4
    plane = rows * words
    plane += (high * wide - plane) % 4
    return words * each, plane * each


def fragments(weight: np.ndarray, p: Conv, tile: Tile, half: str) -> np.ndarray:
    """(m, channels, kh, kw) → (group, part of the maps, sixteen rows, eight steps, lane, 4) as float32: a row
    is a joined output in a map, and has zeros where a step is not of its own window. half: the type of values
    of 16 bits, where they lie so."""
    rows, columns = _under(p, tile)
    channels, outputs, each = p.c // p.group, p.m // p.group, 2 if tile.kind != AS_TF32 else 1
    if tile.kind == AS_NEIGHBOURS:  # both halves of each word
        columns = [2 * word + far for word in _words(p, tile) for far in (0, 1)]
    wide = len(columns)
    deep = _channels(p, tile) * (2 if tile.kind == AS_CHANNELS else 1)
    maps = parts(p, tile) * tile.many
    joined = tile.joined[0] * tile.joined[1]
    laid = np.zeros((p.group, joined, maps, deep, len(rows), wide), np.float32)
    filters = weight.reshape(p.group, outputs, channels, p.kh, p.kw)
    for i, j in np.ndindex(tile.joined):
        down = [rows.index(i * p.stride_h + r * p.dilation_h) for r in range(p.kh)]
        across = [columns.index(j * p.stride_w + s * p.dilation_w) for s in range(p.kw)]
        its = laid[:, i * tile.joined[1] + j, :outputs, :channels]
        its[:, :, :, np.array(down)[:, None], np.array(across)] = filters
    if tile.kind == AS_CHANNELS:  # two channels beside each other
        laid = np.moveaxis(laid.reshape(*laid.shape[:3], -1, 2, len(rows), wide), 4, -1)
    by_part = np.moveaxis(laid.reshape(p.group, joined, parts(p, tile), tile.many, -1), 1, 2)
    matrices = by_part.reshape(p.group * parts(p, tile), joined * tile.many, -1)
    filled = np.zeros((len(matrices), tiles(tile) * 16, slabs(p, tile) * WORDS * each), np.float32)
    filled[:, : matrices.shape[1], : matrices.shape[2]] = matrices
    return as_lanes(filled.reshape(-1, filled.shape[-1]), half if tile.kind != AS_TF32 else "")


def table(p: Conv, tile: Tile, buffer: Buffer, images: int) -> np.ndarray:
    """Where each step lies from its cell's corner on, in bytes, as (eight steps, lane's, 2): lane l has the
    steps l % 4 and l % 4 + 4; behind the last the first, whose weights are zeros."""
    each = 2 if tile.kind == AS_NEIGHBOURS else 1
    channel = np.arange(_channels(p, tile))[:, None, None] * (buffer.plane // each)
    row = np.array(_under(p, tile)[0])[:, None] * (buffer.row // each)
    places = (channel + row + np.array(_words(p, tile))).reshape(-1)
    offsets = np.zeros(slabs(p, tile) * WORDS, np.int32)
    offsets[: places.size] = places * images * 4
    return np.ascontiguousarray(offsets.reshape(-1, 2, 4).swapaxes(1, 2)).reshape(-1)


def as_lanes(rows: np.ndarray, half: str) -> np.ndarray:
    """Whole sixteens of rows, of whole eights of steps → (sixteen rows, eight steps, lane, 4) as float32.
    Lane l has of rows l // 4 and that + 8 the step l % 4, then of both the step l % 4 + 4. A step is a value
    in TF32, or two of the type `half`."""
    words = packing.half(rows, half).view(np.float32) if half else packing.tf32(rows)
    lanes = words.reshape(
        -1, 2, 8, words.shape[1] // WORDS, 2, 4
    )  # sixteen, near or far row, row, slab, half, step
    return np.ascontiguousarray(lanes.transpose(0, 3, 2, 5, 4, 1)).reshape(-1)
