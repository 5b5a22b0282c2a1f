# op = "attention"
# rung = 2
# name = "blocks"
# idea = "Keys and values a block at a time, the softmax kept up on the way: all scores are never written."
# compiled = true
# [needs]
# packed = false
"""y = softmax(cap(scale · q kᵀ) + mask) · v, block by block of the queries and of the keys.

Of each query the largest score so far and the sum of exp(score − largest) are kept. A larger one makes what
was summed smaller by exp(old − new), so that after the last block the sums are those of the whole softmax
(Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"; Dao et al. 2022, "FlashAttention").
What a block adds is summed alone before it is added: of n keys a sum has n / KEYS + KEYS terms in a row.
"""

import math

import numpy as np

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled, inlined, tiles
from kernels.cpu.loops import ONE, ZERO, exp, exp_of_less, larger, tanh, tile_rows, tile_vectors
from kernels.cpu.simd import LANES

QUERIES, KEYS = 64, 128  # of a block
NOTHING = np.float32(-math.inf)


@inlined
def product(tile, rows, panels, w, w_row, panel, depth, offsets, bases, places, lanes, y, y_row, nothing):
    """y (rows, panels · LANES) = w (rows, depth) times what lies in panels of LANES columns each."""
    r = 0
    while r < rows:
        high = tile_rows(rows - r)
        v = 0
        while v < panels:
            many = tile_vectors(high, panels - v)
            simd.tile(
                tile, high, many, simd.shifted(w, r * w_row), w_row, 1, panel, offsets,
                simd.shifted(bases, v), depth, simd.shifted(y, r * y_row), y_row, simd.shifted(places, v),
                lanes, nothing, 0, simd.PLAIN, simd.shifted(w, r * w_row),
            )  # fmt: skip
            v += many
        r += high


@inlined
def packed_keys(k, row, depth, count, panels, into):
    """Keys as columns: panel by panel, element by element, LANES keys side by side; what is no key is 0."""
    for v in range(panels):
        here, of = min(LANES, count - v * LANES), simd.shifted(k, v * LANES * row)
        to = simd.shifted(into, v * depth * LANES)
        simd.turned(of, row, here, depth, to, LANES)
        for e in range(depth):
            for lane in range(here, LANES):
                to[e * LANES + lane] = ZERO


@inlined
def packed_values(v, row, depth, count, panels, into):
    """Values as they are, LANES elements of each side by side in a panel, those that are none 0."""
    for panel in range(panels):
        there = min(LANES, depth - panel * LANES)
        for key in range(count):
            of = simd.shifted(v, key * row + panel * LANES)
            to = simd.shifted(into, (panel * KEYS + key) * LANES)
            simd.picked(to, of, there, 1)
            for lane in range(there, LANES):
                to[lane] = ZERO


@inlined
def masked(a, s, count, wide, query, first, mask):
    """The scores of one query in a block from key `first` on: scaled, capped, masked; −∞ beyond the keys."""
    scale, cap = np.float32(simd.number(a[8])), np.float32(simd.number(a[9]))
    for j in range(count):
        s[j] = s[j] * scale
    if cap > ZERO:
        for j in range(count):
            s[j] = cap * tanh(s[j] / cap)
    if a[16] > 0:
        by_key = a[20]
        if by_key == 1:
            for j in range(count):
                s[j] += mask[first + j]
        else:
            for j in range(count):
                s[j] += mask[0]
    low, high = query + a[10] - first, query + a[11] - first  # of the block, what the query sees
    for j in range(min(count, max(0, low))):
        s[j] = s[j] + NOTHING
    for j in range(max(0, high + 1), count):
        s[j] = s[j] + NOTHING
    for j in range(count, wide):
        s[j] = NOTHING


@compiled
def step(a, low, high, scratch):
    """A part: up to QUERIES queries of one head."""
    heads, shared, queries, keys, depth, depth_v = a[2], a[3], a[4], a[5], a[6], a[7]
    blocks = (queries + QUERIES - 1) // QUERIES
    panels_v = (depth_v + LANES - 1) // LANES
    width = panels_v * LANES
    offsets, key_bases, value_bases = simd.integers(a[33]), simd.integers(a[34]), simd.integers(a[35])
    full = simd.integers(a[36])
    nothing = simd.floats(a[37])

    scores = scratch  # QUERIES × KEYS
    panel_k = simd.shifted(scores, QUERIES * KEYS)  # KEYS / LANES panels of depth × LANES
    panel_v = simd.shifted(panel_k, KEYS * depth)  # of KEYS × LANES
    sums = simd.shifted(panel_v, KEYS * width)  # QUERIES × width, of all blocks so far
    added = simd.shifted(sums, QUERIES * width)  # as many, of this one
    most = simd.shifted(added, QUERIES * width)
    weight = simd.shifted(most, QUERIES)

    first_part, last_part = low, high
    if a[0] == 1:  # low and high count images
        first_part, last_part = low * heads * blocks, high * heads * blocks
    for part in range(first_part, last_part):
        block, of = part % blocks, part // blocks
        head, image = of % heads, of // heads
        top = block * QUERIES
        rows = min(QUERIES, queries - top)
        q = simd.shifted(simd.floats(a[12]), image * a[21] + head * a[22] + top * a[23])
        k = simd.shifted(simd.floats(a[13]), image * a[24] + head // shared * a[25])
        v = simd.shifted(simd.floats(a[14]), image * a[27] + head // shared * a[28])
        y = simd.shifted(simd.floats(a[15]), image * a[30] + head * a[31] + top * a[32])
        mask = simd.floats(a[15])
        if a[16] > 0:
            mask = simd.shifted(simd.floats(a[16]), image * a[17] + head * a[18] + top * a[19])
        for r in range(rows):
            most[r], weight[r] = NOTHING, ZERO
        for i in range(rows * width):
            sums[i] = ZERO
        for first in range(0, keys, KEYS):
            count = min(KEYS, keys - first)
            panels = (count + LANES - 1) // LANES
            wide = panels * LANES
            packed_keys(simd.shifted(k, first * a[26]), a[26], depth, count, panels, panel_k)
            packed_values(simd.shifted(v, first * a[29]), a[29], depth_v, count, panels_v, panel_v)
            product(a[38], rows, panels, q, a[23], panel_k, depth, offsets, key_bases, offsets, full, scores,
                    KEYS, nothing)  # fmt: skip
            for r in range(rows):
                s = simd.shifted(scores, r * KEYS)
                masked(a, s, count, wide, top + r, first, simd.shifted(mask, r * a[19]))
                new = larger(most[r], simd.largest(s, panels))
                base = ZERO if new == NOTHING else new
                for j in range(wide):
                    s[j] = exp_of_less(s[j] - base)
                kept = exp(most[r] - base)
                weight[r] = weight[r] * kept + simd.total(s, panels)
                most[r] = new
                so_far = simd.shifted(sums, r * width)
                for e in range(width):
                    so_far[e] = so_far[e] * kept
            product(a[38], rows, panels_v, scores, KEYS, panel_v, count, offsets, value_bases, offsets, full,
                    added, width, nothing)  # fmt: skip
            for i in range(rows * width):
                sums[i] += added[i]
        for r in range(rows):
            by = weight[r]
            if by == ZERO and a[1] == 1:
                by = ONE
            to, of_row = simd.shifted(y, r * a[32]), simd.shifted(sums, r * width)
            for e in range(depth_v):
                to[e] = of_row[e] / by


def workspace(p):
    width = -(-p.depth_v // LANES) * LANES
    blocks = QUERIES * KEYS + KEYS * (p.depth + width) + 2 * QUERIES * width
    return 4 * (blocks + 2 * QUERIES)


def _strides(shape, swapped):
    """Elements from one image, head and row to the next."""
    second, third = shape[2] * shape[3], shape[3]
    return (shape[1] * second, third, second) if swapped else (shape[1] * second, second, third)


def bind(p, inputs, output, workspace):
    strides = [
        step
        for shape, way in zip((*p.input_shapes[:3], p.output_shape), p.swapped, strict=True)
        for step in _strides(shape, way)
    ]
    panels = np.arange(max(KEYS // LANES, -(-p.depth_v // LANES)))
    steps = np.arange(max(KEYS, p.depth, len(panels))) * LANES
    arguments = [
        int(p.guarded), p.heads, p.heads // p.kv_heads, p.queries, p.keys, p.depth, p.depth_v,
        float(p.scale), float(p.softcap), p.earliest, p.latest, *inputs[:3], output,
        inputs[3] if p.mask else 0, *p.mask_strides, *strides, steps, panels * p.depth * LANES,
        panels * KEYS * LANES, np.full(8, LANES), np.zeros(8 * LANES, np.float32), tiles(),
    ]  # fmt: skip
    parts = p.batch * p.heads * -(-p.queries // QUERIES)
    return Call(step, arguments, workspace, images=p.batch, parts=parts)
