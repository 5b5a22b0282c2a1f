# op = "conv"
# rung = 10
# name = "packed_pixels"
# idea = "What 48 pixels' windows see of all channels is packed once, and multiplied with all maps."
# compiled = true
# packs = true
# needs = {group = 1}
# prefers = {kernel = 1, pad = 0, require = ["m > 32", "out_h * out_w > 8"]}
"""A matrix product by tiles of registers (kernels.cpu.tiles), of as many pixels at a time as half of a core's
own cache holds. One channel's pixels lie far from the next one's in an image: they are copied side by side,
for each element of a window those that it sees, and then read as often as there are tiles of maps. Threads
divide the pixels, and the maps where pixels are few.
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
    """What each element of each channel's window sees for the pixels `first` to `last`, and zeros where a
    vector is not full."""
    channels, h, w, out_w, kh, kw = a[2], a[26], a[27], a[28], a[29], a[30]
    stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w = a[31], a[32], a[33], a[34], a[35], a[36]
    count = last - first
    wide = (count + LANES - 1) // LANES * LANES
    for c in range(channels):
        of = simd.shifted(x, c * h * w)
        for i in range(kh):
            for j in range(kw):
                for k in range(count, wide):
                    to[k] = ZERO
                if a[4] == 1:
                    simd.picked(to, simd.shifted(of, first), count, 1)
                else:
                    start = j * dilation_w - pad_left
                    least = 0 if start >= 0 else (-start + stride_w - 1) // stride_w
                    most = (w - start + stride_w - 1) // stride_w if w > start else 0
                    row, at = first // out_w, first
                    while at < last:
                        left, right = at - row * out_w, min(out_w, last - row * out_w)
                        y = row * stride_h + i * dilation_h - pad_top
                        begin = min(right, max(left, least))
                        end = max(begin, min(right, most))
                        if y < 0 or y >= h:
                            begin = end = right
                        goal = simd.shifted(to, row * out_w - first)
                        for k in range(left, begin):
                            goal[k] = ZERO
                        seen = simd.shifted(of, y * w + start + begin * stride_w)
                        simd.picked(simd.shifted(goal, begin), seen, end - begin, stride_w)
                        for k in range(end, right):
                            goal[k] = ZERO
                        row += 1
                        at = row * out_w
                to = simd.shifted(to, WIDE)


@compiled
def step(a, low, high, scratch):
    maps, depth, area, vectors, panels = a[1], a[15], a[5], a[24], a[25]
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
            of = simd.shifted(x, image * a[2] * a[3])
            for panel in range(first, last):
                begin, end = panel * vectors // panels * LANES, (panel + 1) * vectors // panels * LANES
                to = simd.shifted(scratch, (panel - first) * depth * WIDE)
                copied(a, of, begin, min(area, end), to)
        start = part % slices * of_slice
        for block in range(start, min(blocks, start + of_slice)):
            m, rows = table[2 * block], table[2 * block + 1]
            to = simd.shifted(y, (image * maps + m) * area)
            for panel in range(first, last):
                begin, end = panel * vectors // panels, (panel + 1) * vectors // panels
                packed = simd.shifted(scratch, (panel - first) * depth * WIDE)
                v = begin
                while v < end:
                    many = tile_vectors(rows, end - v)
                    simd.tile(
                        a[23], rows, many, simd.shifted(weights, m * depth), 1, rows, packed, offsets,
                        simd.shifted(bases, v - begin), depth, to, area, simd.shifted(columns, v),
                        simd.shifted(lanes, v), simd.shifted(bias, m), -1, a[21],
                        simd.shifted(weights, m * depth + 64 * rows),
                    )  # fmt: skip
                    v += many
            if a[22] > 0:
                begin = first * vectors // panels * LANES
                end = min(area, last * vectors // panels * LANES)
                for i in range(rows):
                    activate(a[22], simd.shifted(to, i * area + begin), end - begin)


def _depth(p):
    """Terms of a sum."""
    return p.c * p.kh * p.kw


def _as_it_lies(p):
    """Whether each pixel's window is that pixel."""
    plain = p.kh == p.kw == p.stride_h == p.stride_w == 1 and p.pad_top == p.pad_left == 0
    return plain and (p.h, p.w) == (p.out_h, p.out_w)


def _parts(p):
    """(panels of a part, parts of the pixels, parts of the maps, blocks of each, vectors, panels)"""
    vectors, blocks = -(-p.out_h * p.out_w // LANES), len(_blocks(p))
    panels = max(1, vectors // VECTORS)
    bands = -(-panels // max(1, PACKED // (_depth(p) * WIDE)))
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
    return 4 * _parts(p)[0] * _depth(p) * WIDE


def _packed(p, weights):
    of = weights.reshape(p.m, -1)
    return np.concatenate([of[m : m + rows].T.reshape(-1) for m, rows in _blocks(p)]).reshape(1, 1, 1, 1, -1)


def pack(p, inputs):
    return [inputs[0], None if inputs[1] is None else _packed(p, inputs[1]), *inputs[2:]]


def bind(p, inputs, output, workspace):
    weights, first = packed_late(inputs[1], (1, 1, 1, 1, inputs[1].size), np.float32, partial(_packed, p))
    blocks, area = _blocks(p), p.out_h * p.out_w
    band, bands, slices, of_slice, vectors, panels = _parts(p)
    columns = np.arange(0, area, LANES)
    arguments = [
        p.m, p.c, p.h * p.w, int(_as_it_lies(p)), area, band, bands, slices, of_slice,
        len(blocks), inputs[0], weights, inputs[2] if p.bias else np.zeros(p.m, np.float32), output,
        _depth(p), blocks, np.arange(_depth(p)) * WIDE,
        np.arange(MOST) * LANES, columns, np.minimum(LANES, area - columns),
        IN_TILE.get(p.activation, simd.PLAIN), 0 if p.activation in IN_TILE else KINDS[p.activation], tiles(),
        vectors, panels, p.h, p.w, p.out_w, p.kh, p.kw, p.stride_h, p.stride_w, p.pad_top, p.pad_left,
        p.dilation_h, p.dilation_w,
    ]  # fmt: skip
    call = Call(step, arguments, workspace, p.n, p.n * bands * slices, weights.nbytes)
    return sequence([*first, call])
