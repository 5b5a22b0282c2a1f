# op = "gemm"
# rung = 2
# name = "register_tiles"
# idea = "Keeps up to 8 × 48 sums in vector registers, over weights packed once in panels of 16 columns."
# compiled = true
# packs = true
# [needs]
# activation = ["none", "relu", "tanh", "sigmoid", "relu6"]
"""y = activation(alpha · a @ b + beta · bias), tile by tile of the output.

b lies in panels: 16 columns (a vector's) side by side, row after row, so that a tile reads it from its
beginning to its end; alpha is in it. Each element of a is read once a tile and spread over a vector. Long
sums of many rows are cut, so that the part of the panels at hand stays in the second-level cache. Sums are
blocked (kernels.cpu.tiles says how, and how exact they are).
"""

import numpy as np
from numpy.lib.stride_tricks import as_strided

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled, inlined, tiles
from kernels.cpu.loops import IN_TILE, KINDS, activate, tile_rows, tile_vectors
from kernels.cpu.simd import LANES

CUT = 1024  # rows of a panel at a time
CHUNK = 128  # rows of y that are worked on before the next panels are
FEW = 8  # rows of y that need no cut
FULL = np.full(8, LANES)
STEPS = np.arange(8) * LANES


@inlined
def columns_of(a, matrix, top, bottom, group, scratch):
    """The columns of one group of panels, rows `top` to `bottom` of y."""
    k, n, wide = a[1], a[2], a[4]
    panels = a[5]
    x = simd.shifted(simd.floats(a[6]), matrix * a[7])
    weights = simd.shifted(simd.floats(a[8]), matrix * a[9])
    row, along = a[10], a[11]
    bias, bias_row = simd.floats(a[12]), a[13]
    y = simd.shifted(simd.floats(a[14]), matrix * a[15] * n)
    offsets, bases, columns, lanes = (
        simd.integers(a[16]),
        simd.integers(a[17]),
        simd.integers(a[18]),
        simd.integers(a[19]),
    )
    first, last = group * wide, min(panels, (group + 1) * wide)
    width = wide * LANES
    start = 0
    while start < k:
        depth = k - start
        if bottom - top > FEW and depth > CUT:
            depth = CUT
        ends = start + depth == k
        r = top
        while r < bottom:
            rows = tile_rows(bottom - r)
            v = first
            while v < last:
                many = tile_vectors(rows, last - v)
                part = simd.shifted(scratch, (r - top) * width + (v - first) * LANES)
                begin, begin_row = simd.shifted(bias, r * bias_row + v * LANES), bias_row
                if start > 0:
                    begin, begin_row = part, width
                from_x = simd.shifted(x, r * row + start * along)
                from_b = simd.shifted(weights, start * LANES)
                of = simd.shifted(bases, v)
                to, to_row, after = simd.shifted(y, r * n), n, a[20]
                places, filled = simd.shifted(columns, v), simd.shifted(lanes, v)
                if not ends:
                    to, to_row, after = part, width, simd.PLAIN
                    places, filled = simd.integers(a[22]), simd.integers(a[23])
                simd.tile(
                    a[24], rows, many, from_x, row, along, from_b, offsets, of, depth, to, to_row, places,
                    filled, begin, begin_row, after, from_x,
                )  # fmt: skip
                v += many
            r += rows
        start += depth


@compiled
def step(a, low, high, scratch):
    n, groups, m = a[2], a[3], a[15]
    y = simd.floats(a[14])
    if a[0] == 1:
        for group in range(groups):
            columns_of(a, 0, low, high, group, scratch)
        activate(a[21], simd.shifted(y, low * n), (high - low) * n)
        return
    chunks = (m + CHUNK - 1) // CHUNK
    for part in range(low, high):
        group, chunk = part % groups, part // groups
        matrix, chunk = chunk // chunks, chunk % chunks
        top, bottom = chunk * CHUNK, min(m, (chunk + 1) * CHUNK)
        columns_of(a, matrix, top, bottom, group, scratch)
        if a[21] > 0:
            left, right = group * a[4] * LANES, min(n, (group + 1) * a[4] * LANES)
            for r in range(top, bottom):
                activate(a[21], simd.shifted(y, (matrix * m + r) * n + left), right - left)


def _panels(p):
    """(panels, panels of a group): a group's are worked on together."""
    return -(-p.n // LANES), 8 if p.m == 1 else 4 if p.m < 8 else 3


def workspace(p):
    return 4 * min(max(p.m, 8), CHUNK) * _panels(p)[1] * LANES


def _shapes(p):
    matrices = p.batch if p.stride_b else 1
    rows = p.m if p.bias_stride_m else 1
    return (matrices, _panels(p)[0], p.k, LANES), (1, 1, rows, _panels(p)[0] * LANES)


def _packed(p, b, into):
    strides = (p.stride_b, 1, p.k) if p.trans_b else (p.stride_b, p.n, 1)
    of = as_strided(
        b.reshape(-1), (len(into), p.k, p.n), [4 * s for s in strides], writeable=False
    )  # matrix, row, column
    whole = p.n // LANES
    scaled = np.float32(p.alpha)
    full = of[:, :, : whole * LANES].reshape(len(into), p.k, whole, LANES)
    np.multiply(full.transpose(0, 2, 1, 3), scaled, out=into[:, :whole])
    if p.n % LANES:
        np.multiply(of[:, :, whole * LANES :], scaled, out=into[:, whole, :, : p.n % LANES])
    return into


def _bias(p, bias, into):
    shape = (into.shape[2], p.n)
    of = as_strided(bias.reshape(-1), shape, (4 * p.bias_stride_m, 4 * p.bias_stride_n), writeable=False)
    np.multiply(of, np.float32(p.beta), out=into[0, 0, :, : p.n])
    return into


def pack(p, inputs):
    packed = list(inputs)
    for i, (fill, shape) in enumerate(zip((_packed, _bias), _shapes(p), strict=True), 1):
        if i < len(inputs) and inputs[i] is not None:
            packed[i] = fill(p, inputs[i], np.zeros(shape, np.float32))
    return packed


def bind(p, inputs, output, workspace):
    first = []  # of weights that are there at run time alone
    given = [*inputs[1:], *([] if p.bias else [np.zeros(_shapes(p)[1], np.float32)])]
    held = []
    for of, fill, shape in zip(given, (_packed, _bias), _shapes(p), strict=True):
        if of.shape != shape:
            into = np.zeros(shape, np.float32)
            first.append((fill, of, into))
            of = into
        held.append(of)
    b, bias = held
    panels, wide = _panels(p)
    groups = -(-panels // wide)
    tables = np.arange(p.k) * LANES, np.arange(panels) * p.k * LANES, np.arange(panels) * LANES
    lanes = np.minimum(LANES, p.n - tables[2])
    row, along = (1, p.m) if p.trans_a else (p.k, 1)
    arguments = [
        p.k, p.n, groups, wide, panels, inputs[0], p.stride_a, b, b[0].size if p.stride_b else 0, row, along,
        bias, bias.shape[3] if p.bias_stride_m else 0, output, p.m, *tables, lanes,
        IN_TILE.get(p.activation, simd.PLAIN), 0 if p.activation in IN_TILE else KINDS[p.activation],
        STEPS, FULL, tiles(),
    ]  # fmt: skip
    parts = p.batch * -(-p.m // CHUNK) * groups
    alone = p.batch == 1 and not p.trans_a
    call = Call(step, arguments, workspace, p.m if alone else 0, parts, b.nbytes)
    if not first:
        return call

    def run():
        for fill, of, into in first:
            fill(p, of, into)
        call()

    return run
