# op = "qgemm"
# rung = 2
# name = "dot_tiles"
# idea = "Four numbers along the sum in a word, b packed: one instruction adds up 16 × 4 products."
# compiled = true
# packs = true
# [needs]
# dtype = ["uint8", "int8"]
# to = ["int32", "float32", "uint8", "int8"]
"""y = what is behind the sums of a @ b, tile by tile of the output (kernels.cpu.dots).

b lies in panels of 16 columns (a vector's lanes), as words of four rows; beyond the matrix it is 0. Behind
the panels lie the sums of its columns, by which a's zero point comes off. Rows of a are read as words where
they lie if they can be, else from a copy.
"""

from functools import partial

import numpy as np
from numpy.lib.stride_tricks import as_strided

from kernels.cpu import simd
from kernels.cpu.common import packed_late, sequence
from kernels.cpu.compiled import Call, compiled, inlined
from kernels.cpu.quantized import behind, flips, in_float32, kind, numbers, signed, zero_points
from kernels.cpu.simd import LANES

CHUNK = 64  # rows of y of a part
MANY, FEW = 12, 4  # panels of a part, of more rows than a tile has and of no more


@inlined
def columns_of(a, matrix, top, bottom, group, scratch):
    """The columns of one group of panels, rows `top` to `bottom` of y, at most CHUNK."""
    k, n, wide, quads = a[1], a[2], a[4], a[24]
    first, last = group * wide, min(a[5], (group + 1) * wide)
    x = simd.shifted(simd.octets(a[6]), matrix * a[7] + top * k)
    panels = simd.shifted(simd.words(a[8]), matrix * a[9])
    weight_sums = simd.shifted(simd.words(a[10]), matrix * a[11])
    x_zero, flip = simd.octets(a[12])[0] ^ a[15], a[15]
    correction = simd.as_words(scratch)
    zero = simd.shifted(correction, wide * LANES)
    sums = simd.shifted(zero, wide * LANES)
    ready = simd.shifted(sums, CHUNK)
    copy = simd.as_octets(simd.shifted(ready, 4 * wide * LANES))
    count = min(n, last * LANES) - first * LANES
    with_zeros = zero_points(
        first * LANES, count, k, x_zero, simd.octets(a[13]), a[14], a[16], weight_sums, correction, zero
    )
    bias, scale, shift = simd.words(a[17]), simd.doubles(a[18]), simd.doubles(a[19])
    apart = in_float32(
        ready, wide * LANES, first * LANES, count, k, a[21], correction, bias, scale, shift, a[20],
        simd.doubles(a[22]),
    )  # fmt: skip
    rows = bottom - top
    if with_zeros == 1:
        for r in range(rows):
            total = 0
            for i in range(k):
                total += x[r * k + i] ^ flip
            sums[r] = total
    if a[27] == 0:
        for r in range(rows):
            row, of = simd.shifted(copy, r * 4 * quads), simd.shifted(x, r * k)
            for i in range(k):
                row[i] = of[i] ^ flip
            for i in range(k, 4 * quads):
                row[i] = 0
        x = copy
    each, y = a[26], simd.octets(a[23])
    r = 0
    while r < rows:
        high = 8 if rows - r >= 8 else (4 if rows - r >= 4 else (2 if rows - r >= 2 else 1))
        most = 3 if high >= 4 else 4
        v = first
        while v < last:
            many = min(most, last - v)
            at, here = v * LANES, (v - first) * LANES
            simd.dots_by_lane(
                high, many, simd.as_words(simd.shifted(x, r * 4 * quads)), simd.integers(a[28]),
                simd.integers(a[29]), simd.shifted(panels, at * quads), quads,
                simd.shifted(y, ((matrix * a[25] + top + r) * n + at) * each), n, n - at, a[21],
                simd.doubles(a[22]), simd.shifted(correction, here), simd.shifted(simd.words(a[17]), at),
                simd.shifted(simd.doubles(a[18]), at), simd.shifted(simd.doubles(a[19]), at),
                simd.shifted(zero, here), simd.shifted(sums, r), with_zeros, a[20],
                simd.shifted(ready, here), apart,
            )  # fmt: skip
            v += many
        r += high


@compiled
def step(a, low, high, scratch):
    groups, m = a[3], a[25]
    if a[0] == 1:
        while low < high:
            bottom = min(high, low + CHUNK)
            for group in range(groups):
                columns_of(a, 0, low, bottom, group, scratch)
            low = bottom
        return
    chunks = (m + CHUNK - 1) // CHUNK
    for part in range(low, high):
        group, chunk = part % groups, part // groups
        matrix, chunk = chunk // chunks, chunk % chunks
        columns_of(a, matrix, chunk * CHUNK, min(m, (chunk + 1) * CHUNK), group, scratch)


def _panels(g):
    """(panels, panels of a group, words along the sum)"""
    return -(-g.n // LANES), MANY if g.m > simd.ROWS else FEW, -(-g.k // 4)


def _direct(p):
    """Whether rows of a are words as they lie."""
    return p.dtype == "uint8" and p.product.k % 4 == 0


def workspace(p):
    _, wide, quads = _panels(p.product)
    rows = 0 if _direct(p) else min(max(p.product.m, 1), CHUNK)
    return 4 * (6 * wide * LANES + CHUNK + rows * quads)


def _nbytes(p):
    """Of packed weights: of the panels, and of their columns' sums."""
    panels, _, quads = _panels(p.product)
    matrices = p.product.batch if p.product.stride_b else 1
    return matrices * panels * quads * LANES * 4, matrices * panels * LANES * 4


def _packed(p, b):
    g, (of_panels, of_sums) = p.product, _nbytes(p)
    panels, _, quads = _panels(g)
    into = np.zeros(of_panels + of_sums, np.int8)
    matrices = g.batch if g.stride_b else 1
    strides = (g.stride_b, 1, g.k) if g.trans_b else (g.stride_b, g.n, 1)
    of = as_strided(signed(p, b).reshape(-1), (matrices, g.k, g.n), strides, writeable=False)
    whole = np.zeros((matrices, 4 * quads, panels * LANES), np.int8)
    whole[:, : g.k, : g.n] = of
    to = into[:of_panels].reshape(matrices, panels, quads, LANES, 4)
    to[...] = whole.reshape(matrices, quads, 4, panels, LANES).transpose(0, 3, 1, 4, 2)
    into[of_panels:].view(np.int32)[:] = whole.sum(axis=1, dtype=np.int32).reshape(-1)
    return into


def pack(p, inputs):
    return [inputs[0], None if inputs[1] is None else _packed(p, inputs[1]), *inputs[2:]]


def bind(p, inputs, output, workspace):
    g, (of_panels, of_sums) = p.product, _nbytes(p)
    panels, wide, quads = _panels(g)
    weights, first = packed_late(inputs[1], (of_panels + of_sums,), np.int8, partial(_packed, p))
    matrices = g.batch if g.stride_b else 1
    held, sums = weights[:of_panels], weights[of_panels:]
    groups = -(-panels // wide)
    bias, scale, shift = behind(p, inputs)
    apart = (held.size // matrices // 4, sums.size // matrices // 4) if g.stride_b else (0, 0)
    arguments = [
        g.k, g.n, groups, wide, panels, inputs[0], g.stride_a, held, apart[0], sums, apart[1],
        inputs[2], inputs[3], int(p.weight_zeros > 1), *flips(p), bias, scale, shift, int(p.shifted), kind(p),
        numbers(p), output, quads, g.m, output.itemsize, int(_direct(p)),
        np.arange(simd.ROWS) * quads, np.arange(quads),
    ]  # fmt: skip
    alone = g.batch == 1
    parts = g.batch * -(-g.m // CHUNK) * groups
    call = Call(step, arguments, workspace, g.m if alone else 0, parts, weights.nbytes)
    return sequence([*first, call])
