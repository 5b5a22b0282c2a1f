# op = "conv"
# rung = 11
# name = "winograd_tiles"
# method = "winograd"
# idea = "Winograd's F(4×4, 3×3) or F(2×2, 3×3), compiled: sums of 16 tiles and products in registers."
# compiled = true
# packs = true
# needs = {kernel = 3, stride = 1, dilation = 1, group = 1}
# prefers = {require = ["c >= 16", "m >= 16", "out_h * out_w >= 100"]}
"""As rung 4, for a band of rows of tiles at a time, as many as half of a core's own cache holds: the products
are those of kernels.cpu.tiles, the sums before and behind them those of kernels.cpu.winograd. Tiles of 4 × 4
outputs take 2.25 multiplications an output and channel, those of 2 × 2 take 4, the direct way 9; but larger
tiles fill vectors worse where images are small, and read more weights. `_way` weighs that.

Threads divide images and bands, and the maps where these are few. A sum mixes the elements of a tile, so that
NaN or infinity reaches all its outputs.
"""

from functools import cache, partial
from typing import NamedTuple

import numpy as np

from kernels.cpu import simd
from kernels.cpu.common import packed_late, sequence
from kernels.cpu.compiled import Call, compiled, inlined, tiles
from kernels.cpu.loops import IN_TILE, KINDS, ZERO, activate, tile_vectors
from kernels.cpu.simd import LANES, ROWS

G = {
    2: np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]),
    4: np.array(
        [[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]],
    )
    / 24,
}
BEFORE_NBYTES = 5 << 18  # of a band's tiles
BEHIND_NBYTES = 1 << 18  # of the products of a group of maps
PARTS = 8  # at least: else threads would wait for the last
FEW = 32  # maps of a part, at least
# Cycles, by a rough guess: of a tile of registers a product deep, by its vectors; of 16 tiles of a channel
# before the products and behind them; of four bytes of weights that no cache of a core's own holds.
OF_VECTORS = {1: 7.0, 2: 8.5, 3: 12.0}
BEFORE, BEHIND = {2: 60, 4: 200}, {2: 40, 4: 150}
OF_WEIGHT = 0.7


@inlined
def laid_out(x, h, w, first, rows, pad_left, pitch, filled, to):
    """Rows `first` to `first + rows` of a channel, whose rows and columns outside the image are zeros."""
    right = min(filled, pad_left + w)
    for r in range(rows):
        row, y = simd.shifted(to, r * pitch), first + r
        if y < 0 or y >= h:
            for k in range(filled):
                row[k] = ZERO
            continue
        of = simd.shifted(x, y * w - pad_left)
        for k in range(pad_left):
            row[k] = ZERO
        simd.picked(simd.shifted(row, pad_left), simd.shifted(of, pad_left), right - pad_left, 1)
        for k in range(right, filled):
            row[k] = ZERO


@compiled
def step(a, low, high, scratch):
    size, side, channels, h, w, maps, out_h, out_w = a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]
    pad_top, pad_left, down, across, band, bands = a[9], a[10], a[11], a[12], a[13], a[14]
    pitch, filled, of_channel, place, place_behind = a[15], a[16], a[17], a[18], a[19]
    slices, groups, after, all_blocks = a[20], a[21], a[22], a[23]
    x, weights, bias, y = simd.floats(a[24]), simd.floats(a[25]), simd.floats(a[26]), simd.floats(a[27])
    blocks, of_group, offsets = simd.integers(a[28]), simd.integers(a[29]), simd.integers(a[30])
    columns, lanes, zeros = simd.integers(a[31]), simd.integers(a[32]), simd.floats(a[33])
    before, behind = simd.shifted(scratch, a[36]), simd.shifted(scratch, a[37])
    there = -1
    if a[0] == 1:
        low, high = low * bands * slices, high * bands * slices
    for part in range(low, high):
        image, first = part // slices // bands, part // slices % bands * band
        last = min(down, first + band)
        if part // slices != there:
            there = part // slices
            for c in range(channels):
                of = simd.shifted(x, (image * channels + c) * h * w)
                rows = (last - first) * size + 2
                laid_out(of, h, w, first * size - pad_top, rows, pad_left, pitch, filled, scratch)
                for row in range(first, last):
                    simd.to_tiles(
                        simd.shifted(scratch, (row - first) * size * pitch), pitch, across,
                        simd.shifted(before, c * of_channel + (row - first) * across), place, size,
                    )  # fmt: skip
        many = ((last - first) * across + 15) // 16
        start = part % slices
        for group in range(start * groups // slices, (start + 1) * groups // slices):
            first_block, last_block = of_group[group], of_group[group + 1]
            begin = blocks[2 * first_block]
            for p in range(side * side):
                for block in range(first_block, last_block):
                    m, rows = blocks[2 * block], blocks[2 * block + 1]
                    to = simd.shifted(behind, p * place_behind + (m - begin) * of_channel)
                    v = 0
                    while v < many:
                        wide = tile_vectors(rows, many - v)
                        simd.tile(
                            a[35], rows, wide, simd.shifted(weights, (p * maps + m) * channels), 1, rows,
                            simd.shifted(before, p * place), offsets, simd.shifted(columns, v), channels, to,
                            of_channel, simd.shifted(columns, v), lanes, zeros, -1, simd.PLAIN,
                            simd.shifted(weights, (p * maps + m) * channels + 64 * rows),
                        )  # fmt: skip
                        v += wide
            end = maps if last_block == all_blocks else blocks[2 * last_block]
            for m in range(begin, end):
                for row in range(first, last):
                    of = simd.shifted(behind, (m - begin) * of_channel + (row - first) * across)
                    to = simd.shifted(y, ((image * maps + m) * out_h + row * size) * out_w)
                    left = min(size, out_h - row * size)
                    simd.from_tiles(
                        of, place_behind, across, to, out_w, left, out_w, simd.shifted(bias, m), after, size
                    )
                    activate(a[34], to, left * out_w)


class Way(NamedTuple):
    """size: outputs of a tile along an axis. down, across: tiles. band: rows of tiles that go together."""

    size: int
    down: int
    across: int
    band: int

    @property
    def places(self):
        return (self.size + 2) ** 2

    @property
    def of_channel(self):
        """Elements from one channel's tiles to the next one's: the last row of tiles is written in whole
        vectors."""
        return -(-((self.band - 1) * self.across) // LANES) * LANES + -(-self.across // LANES) * LANES

    def pitch(self):
        """Elements of a padded row, as far as whole vectors of tiles are read."""
        return -(-self.across // LANES) * LANES * self.size + LANES


@cache
def _way(p):
    """The Way that takes the fewest cycles, by a rough guess."""
    found = []
    for size in G:
        down, across = -(-p.out_h // size), -(-p.out_w // size)
        for band in range(1, down + 1):
            way = Way(size, down, across, band)
            if band > 1 and _before(p, way) * 4 > BEFORE_NBYTES:
                break
            found.append((_cycles(p, way), way))
    return min(found)[1]


def _before(p, way):
    """Elements of a band's tiles of all channels."""
    return way.places * (p.c * way.of_channel + LANES)


def _cycles(p, way):
    bands = -(-way.down // way.band)
    vectors = -(-way.band * way.across // LANES)
    rows = way.band * -(-way.across // LANES)
    threes = vectors // 3 - (vectors % 3 == 1 and vectors > 1)
    twos, ones = divmod(vectors - 3 * threes, 2)
    product = threes * OF_VECTORS[3] + twos * OF_VECTORS[2] + ones * OF_VECTORS[1]
    weights = way.places * p.m * p.c
    products = max(
        way.places * -(-p.m // ROWS) * p.c * product, weights * OF_WEIGHT * (4 * weights > 1 << 20)
    )
    return bands * (products + rows * (p.c * BEFORE[way.size] + p.m * BEHIND[way.size]))


def _groups(p, way):
    """(parts of the maps, maps of a group): a group's products are behind one another in the caches."""
    bands = p.n * -(-way.down // way.band)
    slices = max(1, min(-(-PARTS // bands), p.m // FEW))
    few = BEHIND_NBYTES // (4 * way.places * way.of_channel)
    most = p.m if 4 * _before(p, way) > BEFORE_NBYTES else few
    maps = max(ROWS, min(most, -(-p.m // slices)) // ROWS * ROWS)
    return min(slices, -(-p.m // maps)), maps


def _scratch(p):
    """Elements: of padded rows, of tiles before the products, of one place behind them, of all of these."""
    way = _way(p)
    rows = (way.band * way.size + 2) * way.pitch() + LANES
    behind = min(p.m, _groups(p, way)[1] + ROWS) * way.of_channel + LANES
    return -(-rows // LANES) * LANES, _before(p, way), behind, way.places * behind


def workspace(p):
    rows, before, _, behind = _scratch(p)
    return 4 * (rows + before + behind)


def _blocks(p):
    """(first map, maps) of each tile's rows."""
    found, first = [], 0
    while first < p.m:
        rows = next(r for r in (ROWS, 6, 4, 2, 1) if first + r <= p.m)
        found.append((first, rows))
        first += rows
    return np.array(found, np.int64)


def _packed(p, weights):
    g = G[_way(p).size]
    of = np.einsum("ai,mcij,bj->abmc", g, weights.reshape(p.m, p.c, 3, 3).astype(np.float64), g)
    of = of.reshape(-1, p.m, p.c).astype(np.float32)
    packed = [of[:, m : m + rows].transpose(0, 2, 1).reshape(len(of), -1) for m, rows in _blocks(p)]
    return np.concatenate(packed, axis=1).reshape(1, 1, 1, 1, -1)


def pack(p, inputs):
    return [inputs[0], None if inputs[1] is None else _packed(p, inputs[1]), *inputs[2:]]


def bind(p, inputs, output, workspace):
    way = _way(p)
    shape = (1, 1, 1, 1, way.places * p.m * p.c)
    weights, late = packed_late(inputs[1], shape, np.float32, partial(_packed, p))
    blocks = _blocks(p)
    slices, of_group = _groups(p, way)
    starts = np.searchsorted(blocks[:, 0], np.arange(0, p.m, of_group))
    rows, before, place_behind, _ = _scratch(p)
    bands = -(-way.down // way.band)
    vectors = way.of_channel // LANES
    filled = way.across * way.size + 2
    arguments = [
        way.size, way.size + 2, p.c, p.h, p.w, p.m, p.out_h, p.out_w, p.pad_top, p.pad_left, way.down,
        way.across, way.band, bands, way.pitch(), filled, way.of_channel, p.c * way.of_channel + LANES,
        place_behind, slices, len(starts), IN_TILE.get(p.activation, simd.PLAIN), len(blocks), inputs[0],
        weights, inputs[2] if p.bias else np.zeros(p.m, np.float32), output, blocks,
        np.append(starts, len(blocks)), np.arange(p.c) * way.of_channel, np.arange(vectors) * LANES,
        np.full(8, LANES), np.zeros(ROWS, np.float32),
        0 if p.activation in IN_TILE else KINDS[p.activation], tiles(), rows, rows + before,
    ]  # fmt: skip
    call = Call(step, arguments, workspace, p.n, p.n * bands * slices, weights.nbytes)
    return sequence([*late, call])
