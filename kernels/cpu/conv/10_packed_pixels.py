# op = "conv"
# rung = 10
# name = "packed_pixels"
# idea = "Windows of one element: 48 pixels of all channels, packed once, are multiplied with all maps."
# compiled = true
# packs = true
# [needs]
# kernel = 1
# group = 1
# pad = 0
"""A matrix product by tiles of registers (kernels.cpu.tiles), of as many pixels at a time as half of a core's
own cache holds. One channel's pixels lie far from the next one's in an image: they are copied side by side,
those that a stride leaves out not at all, and then read as often as there are tiles of maps. Threads divide
the pixels, and the maps where pixels are few.
"""

from functools import partial

import numpy as np

from kernels.cpu import simd
from kernels.cpu.common import packed_late, sequence
from kernels.cpu.compiled import Call, compiled, inlined, tiles
from kernels.cpu.loops import IN_TILE, KINDS, ZERO, activate, tile_vectors
from kernels.cpu.simd import LANES, ROWS

VECTORS = 3  # of a tile, and so many or a few more of the pixels that are packed side by side
MOST = 2 * VECTORS - 1
WIDE = MOST * LANES  # elements from one channel to the next
PACKED = 1 << 17  # elements
PARTS = 16  # at least: else threads would wait for the last
BLOCKS = 4  # of maps, at least, for one packing


@inlined
def copied(a, x, first, last, to):
    """The pixels `first` to `last` of all channels, and zeros where a vector is not full."""
    channels, plane, places = a[2], a[3], simd.integers(a[15])
    count = last - first
    wide = (count + LANES - 1) // LANES * LANES
    for k in range(channels):
        of = simd.shifted(x, k * plane)
        if a[4] == 1:
            of = simd.shifted(of, first)
            for j in range(count):
                to[j] = of[j]
        else:
            for j in range(count):
                to[j] = of[places[first + j]]
        for j in range(count, wide):
            to[j] = ZERO
        to = simd.shifted(to, WIDE)


@compiled
def step(a, low, high, scratch):
    maps, channels, area, vectors, panels = a[1], a[2], a[5], a[24], a[25]
    band, bands, slices, of_slice, blocks = a[6], a[7], a[8], a[9], a[10]
    x, weights, bias, y = simd.floats(a[11]), simd.floats(a[12]), simd.floats(a[13]), simd.floats(a[14])
    table, offsets, bases = simd.integers(a[16]), simd.integers(a[17]), simd.integers(a[18])
    columns, lanes = simd.integers(a[19]), simd.integers(a[20])
    there = -1
    if a[0] == 1:
        low, high = low * bands * slices, high * bands * slices
    for part in range(low, high):
        place = part // slices
        image, first = place // bands, place % bands * band
        last = min(panels, first + band)
        if place != there:
            there = place
            of = simd.shifted(x, image * channels * a[3])
            for panel in range(first, last):
                begin, end = panel * vectors // panels * LANES, (panel + 1) * vectors // panels * LANES
                to = simd.shifted(scratch, (panel - first) * channels * WIDE)
                copied(a, of, begin, min(area, end), to)
        start = part % slices * of_slice
        for block in range(start, min(blocks, start + of_slice)):
            m, rows = table[2 * block], table[2 * block + 1]
            to = simd.shifted(y, (image * maps + m) * area)
            for panel in range(first, last):
                begin, end = panel * vectors // panels, (panel + 1) * vectors // panels
                packed = simd.shifted(scratch, (panel - first) * channels * WIDE)
                v = begin
                while v < end:
                    many = tile_vectors(rows, end - v)
                    simd.tile(
                        a[23], rows, many, simd.shifted(weights, m * channels), 1, rows, packed, offsets,
                        simd.shifted(bases, v - begin), channels, to, area, simd.shifted(columns, v),
                        simd.shifted(lanes, v), simd.shifted(bias, m), -1, a[21],
                    )  # fmt: skip
                    v += many
            if a[22] > 0:
                begin = first * vectors // panels * LANES
                end = min(area, last * vectors // panels * LANES)
                for i in range(rows):
                    activate(a[22], simd.shifted(to, i * area + begin), end - begin)


def _parts(p):
    """(panels of a part, parts of the pixels, parts of the maps, blocks of each, vectors, panels)"""
    vectors, blocks = -(-p.out_h * p.out_w // LANES), len(_blocks(p))
    panels = max(1, vectors // VECTORS)
    bands = -(-panels // max(1, PACKED // (p.c * WIDE)))
    band = -(-panels // bands)
    bands = -(-panels // band)
    slices = max(1, min(-(-PARTS // (p.n * bands)), blocks // BLOCKS))
    of_slice = -(-blocks // slices)
    return band, bands, -(-blocks // of_slice), of_slice, vectors, panels


def _blocks(p):
    """(first map, maps) of each tile's rows."""
    found, first = [], 0
    while first < p.m:
        rows = next(r for r in (ROWS, 6, 4, 2, 1) if first + r <= p.m)
        found.append((first, rows))
        first += rows
    return np.array(found, np.int64)


def workspace(p):
    return 4 * _parts(p)[0] * p.c * WIDE


def _packed(p, weights):
    of = weights.reshape(p.m, p.c)
    return np.concatenate([of[m : m + rows].T.reshape(-1) for m, rows in _blocks(p)]).reshape(1, 1, 1, 1, -1)


def pack(p, inputs):
    return [inputs[0], None if inputs[1] is None else _packed(p, inputs[1]), *inputs[2:]]


def bind(p, inputs, output, workspace):
    weights, first = packed_late(inputs[1], (1, 1, 1, 1, inputs[1].size), np.float32, partial(_packed, p))
    blocks, area = _blocks(p), p.out_h * p.out_w
    band, bands, slices, of_slice, vectors, panels = _parts(p)
    rows, across = np.divmod(np.arange(area), p.out_w)
    columns = np.arange(0, area, LANES)
    arguments = [
        p.m, p.c, p.h * p.w, int((p.h, p.w) == (p.out_h, p.out_w)), area, band, bands, slices, of_slice,
        len(blocks), inputs[0], weights, inputs[2] if p.bias else np.zeros(p.m, np.float32), output,
        rows * p.stride_h * p.w + across * p.stride_w, blocks, np.arange(p.c) * WIDE,
        np.arange(MOST) * LANES, columns, np.minimum(LANES, area - columns),
        IN_TILE.get(p.activation, simd.PLAIN), 0 if p.activation in IN_TILE else KINDS[p.activation], tiles(),
        vectors, panels,
    ]  # fmt: skip
    call = Call(step, arguments, workspace, p.n, p.n * bands * slices, weights.nbytes)
    return sequence([*first, call])
