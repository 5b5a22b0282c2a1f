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

import numpy as np

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled, inlined, tiles
from kernels.cpu.loops import IN_TILE, KINDS, ZERO, activate, tile_vectors
from kernels.cpu.simd import LANES, ROWS

VECTORS = 3  # of a tile, and of the pixels that are packed side by side
WIDE = VECTORS * LANES
PACKED = 1 << 17  # elements
PARTS = 16  # at least: else threads would wait for the last
BLOCKS = 4  # of maps, at least, for one packing


@inlined
def copied(a, x, first, last, to):
    """The pixels `first` to `last` of all channels: WIDE of each channel, one channel after the other."""
    channels, plane, places = a[2], a[3], simd.integers(a[15])
    for begin in range(first, last, WIDE):
        count = min(WIDE, last - begin)
        for k in range(channels):
            of = simd.shifted(x, k * plane)
            if a[4] == 1 and count == WIDE:
                of = simd.shifted(of, begin)
                for j in range(WIDE):
                    to[j] = of[j]
            else:
                for j in range(count):
                    to[j] = of[places[begin + j]]
                for j in range(count, WIDE):
                    to[j] = ZERO
            to = simd.shifted(to, WIDE)


@compiled
def step(a, low, high, scratch):
    maps, channels, area = a[1], a[2], a[5]
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
        last = min(area, first + band)
        if place != there:
            there = place
            copied(a, simd.shifted(x, image * channels * a[3]), first, last, scratch)
        begin = part % slices * of_slice
        for block in range(begin, min(blocks, begin + of_slice)):
            m, rows = table[2 * block], table[2 * block + 1]
            to = simd.shifted(y, (image * maps + m) * area)
            for at in range(first, last, WIDE):
                panel = simd.shifted(scratch, (at - first) * channels)
                v, left = at // LANES, (min(last, at + WIDE) - at + LANES - 1) // LANES
                done = 0
                while done < left:
                    many = tile_vectors(rows, left - done)
                    simd.tile(
                        a[23], rows, many, simd.shifted(weights, m * channels), 1, rows, panel, offsets,
                        simd.shifted(bases, done), channels, to, area, simd.shifted(columns, v + done),
                        simd.shifted(lanes, v + done), simd.shifted(bias, m), -1, a[21],
                    )  # fmt: skip
                    done += many
            if a[22] > 0:
                for i in range(rows):
                    activate(a[22], simd.shifted(to, i * area + first), last - first)


def _parts(p):
    """(pixels of a part, parts of the pixels, parts of the maps, blocks of each)"""
    area, blocks = p.out_h * p.out_w, len(_blocks(p))
    band = min(max(1, PACKED // (p.c * WIDE)) * WIDE, -(-area // WIDE) * WIDE)
    bands = -(-area // band)
    band = -(-area // bands // WIDE) * WIDE
    bands = -(-area // band)
    slices = max(1, min(-(-PARTS // (p.n * bands)), blocks // BLOCKS))
    of_slice = -(-blocks // slices)
    return band, bands, -(-blocks // of_slice), of_slice


def _blocks(p):
    """(first map, maps) of each tile's rows."""
    found, first = [], 0
    while first < p.m:
        rows = next(r for r in (ROWS, 6, 4, 2, 1) if first + r <= p.m)
        found.append((first, rows))
        first += rows
    return np.array(found, np.int64)


def workspace(p):
    return 4 * _parts(p)[0] * p.c


def _packed(p, weights):
    of = weights.reshape(p.m, p.c)
    return np.concatenate([of[m : m + rows].T.reshape(-1) for m, rows in _blocks(p)]).reshape(1, 1, 1, 1, -1)


def pack(p, inputs):
    if inputs[1] is None:
        return list(inputs)
    return [inputs[0], np.ascontiguousarray(_packed(p, inputs[1])), *inputs[2:]]


def bind(p, inputs, output, workspace):
    weights, late = inputs[1], None
    if weights.shape != (1, 1, 1, 1, weights.size):
        late, weights = weights, np.empty(weights.size, np.float32)
    blocks, area = _blocks(p), p.out_h * p.out_w
    band, bands, slices, of_slice = _parts(p)
    rows, across = np.divmod(np.arange(area), p.out_w)
    columns = np.arange(0, area, LANES)
    arguments = [
        p.m, p.c, p.h * p.w, int((p.h, p.w) == (p.out_h, p.out_w)), area, band, bands, slices, of_slice,
        len(blocks), inputs[0], weights, inputs[2] if p.bias else np.zeros(p.m, np.float32), output,
        rows * p.stride_h * p.w + across * p.stride_w, blocks, np.arange(p.c) * WIDE,
        np.arange(VECTORS) * LANES, columns, np.minimum(LANES, area - columns),
        IN_TILE.get(p.activation, simd.PLAIN), 0 if p.activation in IN_TILE else KINDS[p.activation], tiles(),
    ]  # fmt: skip
    call = Call(step, arguments, workspace, p.n, p.n * bands * slices, weights.nbytes)
    if late is None:
        return call

    def run():
        np.copyto(weights, _packed(p, late).reshape(-1))
        call()

    return run
