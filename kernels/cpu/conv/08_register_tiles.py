# op = "conv"
# rung = 8
# name = "register_tiles"
# idea = "No columns: sums of up to 8 maps × 48 pixels in vector registers, straight from a padded image."
# compiled = true
# packs = true
"""A tile of sums stays in registers over all channels and kernel positions; it is written once, finished.

The image lies padded in scratch, for a stride s as s · s images of every s-th row and column, so that 16
outputs side by side read 16 inputs side by side, whatever the window: where a window's element lies is a
table's to say. Weights are packed as they are read: for up to 8 maps, one after the other for each element of
the window. Rows too short for vectors are computed with the padding between them, and picked out.
Sums are blocked (kernels.cpu.tiles says how, and how exact they are).
"""

from dataclasses import replace
from functools import partial

import numpy as np

from kernels import registry
from kernels.cpu import load, simd
from kernels.cpu.common import packed_late, sequence
from kernels.cpu.compiled import Call, compiled, inlined, tiles
from kernels.cpu.loops import IN_TILE, KINDS, ZERO, activate, tile_vectors
from kernels.cpu.simd import LANES
from kernels.ops.gemm import Gemm

# Over the same pixels of an image that is larger than the first go, one after the other, as many blocks of
# maps as have weights that stay in a core's own cache; more than MOST_BLOCKS write to too many places.
FAR_NBYTES, NEAR_NBYTES, MOST_BLOCKS = 1 << 20, 1 << 17, 8


@inlined
def lay_out(a, x, to):
    """Some channels of an image, padded and divided by rows and columns."""
    channels, h, w, high, pitch, phases = a[2], a[3], a[4], a[5], a[6], a[7]
    pad_top, pad_left, down = a[8], a[9], a[31]
    if a[32] == 1:
        simd.picked(to, x, channels * h * w, 1)
        return
    behind = simd.shifted(to, channels * phases * high * pitch)
    for k in range(LANES):
        behind[k] = ZERO
    for c in range(channels):
        for phase in range(phases):
            left = max(0, (pad_left - phase + phases - 1) // phases)
            right = min(pitch, (w + pad_left - phase + phases - 1) // phases)
            right = max(left, right)
            for at in range(high):
                row = simd.shifted(to, ((c * phases + phase) * high + at) * pitch)
                y = at % (high // down) * down + at // (high // down) - pad_top
                if y < 0 or y >= h:
                    for k in range(pitch):
                        row[k] = ZERO
                    continue
                for k in range(min(left, pitch)):
                    row[k] = ZERO
                of = simd.shifted(x, (c * h + y) * w + phase - pad_left)
                of = simd.shifted(of, left * phases)
                simd.picked(simd.shifted(row, left), of, right - left, phases)
                for k in range(right, pitch):
                    row[k] = ZERO


@inlined
def pick_out(of, of_row, between, y, rows, out_h, out_w):
    """The outputs of `rows` maps without what lies between their rows, 16 at a time: what
    is beyond it is written again with the next row; the last ones one by one."""
    wide = (out_w + LANES - 1) // LANES * LANES
    for r in range(rows):
        for at in range(out_h):
            place = (r * out_h + at) * out_w
            here, to = simd.shifted(of, r * of_row + at * between), simd.shifted(y, place)
            if place + wide <= rows * out_h * out_w:
                for first in range(0, wide, LANES):
                    for k in range(LANES):
                        to[first + k] = here[first + k]
            else:
                for k in range(out_w):
                    to[k] = here[k]


@compiled
def step(a, low, high, scratch):
    blocks, channels, h, w = a[1], a[2], a[3], a[4]
    depth, groups, maps = a[10], a[11], a[12]
    x, weights, bias, y = simd.floats(a[13]), simd.floats(a[14]), simd.floats(a[15]), simd.floats(a[16])
    table, offsets, bases = simd.integers(a[17]), simd.integers(a[18]), simd.integers(a[19])
    columns, lanes, vectors = simd.integers(a[20]), simd.integers(a[21]), a[22]
    plane, between, out_h, out_w = a[23], a[24], a[25], a[26]
    apart = simd.shifted(scratch, a[29])
    if a[0] == 1:
        low, high = low * blocks, high * blocks
    there, seen = -1, x
    part = low
    while part < high:
        image, block = part // blocks, part % blocks
        first, rows, group = table[3 * block], table[3 * block + 1], table[3 * block + 2]
        count = 1  # of blocks that go over the same pixels
        while count < min(a[33], high - part, blocks - block):
            other = 3 * (block + count)
            if table[other + 1] != rows or table[other + 2] != group:
                break
            count += 1
        part += count
        if image * groups + group != there:
            there = image * groups + group
            seen = simd.shifted(x, there * channels * h * w)
            if a[32] < 2:
                lay_out(a, seen, scratch)
                seen = scratch
        v = 0
        while v < vectors:
            many = tile_vectors(rows, vectors - v)
            for m in range(first, first + count * rows, rows):
                to, to_row = simd.shifted(y, (image * maps + m) * plane), plane
                if between > 0:
                    to, to_row = apart, vectors * LANES
                simd.tile(
                    a[30], rows, many, simd.shifted(weights, m * depth), 1, rows, seen, offsets,
                    simd.shifted(bases, v), depth, to, to_row, simd.shifted(columns, v),
                    simd.shifted(lanes, v), simd.shifted(bias, m), -1, a[27],
                    simd.shifted(weights, m * depth + 64 * rows),
                )  # fmt: skip
            v += many
        done = simd.shifted(y, (image * maps + first) * plane)
        if between > 0:
            pick_out(apart, vectors * LANES, between, done, rows, out_h, out_w)
        activate(a[28], done, count * rows * plane)


def _one_row(p):
    """A convolution of single elements with its image as one long row."""
    plain = p.kh == p.kw == p.stride_h == p.stride_w == 1
    if plain and (p.h, p.w) == (p.out_h, p.out_w) and p.pad_top == p.pad_left == 0:
        return replace(p, h=1, w=p.h * p.w, out_h=1, out_w=p.h * p.w, pad_bottom=0, pad_right=0)
    return p


def _product(p):
    """Of a window that is the whole image a matrix product; else None."""
    whole = (p.out_h, p.out_w, p.kh, p.kw) == (1, 1, p.h, p.w) and p.pad_top == p.pad_left == 0
    if not whole or p.group > 1:
        return None
    return Gemm(p.n, p.m, p.c * p.kh * p.kw, trans_b=True, bias=p.bias, activation=p.activation)


def _gemm():
    return load(registry.find("cpu", "gemm", "register_tiles"))


def _padded(p):
    """(rows, in as many parts as a stride is long; elements of a row, divided by columns): the padding in
    front of a row is that behind the row before it, where it suffices."""
    high = (p.out_h - 1) * p.stride_h + (p.kh - 1) * p.dilation_h + 1
    wide = (p.out_w - 1) * p.stride_w + (p.kw - 1) * p.dilation_w + 1
    if p.stride_w == 1 and 0 < wide - p.pad_left - p.w <= min(p.pad_left, LANES):
        wide = p.pad_left + p.w
    return -(-high // p.stride_h) * p.stride_h, -(-wide // p.stride_w)


def _vectors(p):
    """(bases, columns, lanes, elements between two rows of outputs or 0)"""
    _, pitch = _padded(p)
    by_row = -(-p.out_w // LANES)
    count = (p.out_h - 1) * pitch + p.out_w
    flat = -(-count // LANES)
    if flat * 11 <= by_row * p.out_h * 10:
        places = np.arange(flat) * LANES
        return places, places, np.full(flat, LANES), pitch
    row, column = np.divmod(np.arange(p.out_h * by_row), by_row)
    column = column * LANES
    bases = row * pitch + column
    return bases, row * p.out_w + column, np.minimum(LANES, p.out_w - column), 0


def _blocks(p):
    """(first map, maps, group) of each tile's rows."""
    filters = p.m // p.group
    found = []
    for group in range(p.group):
        first = 0
        while first < filters:
            rows = next(r for r in (8, 6, 4, 2, 1) if first + r <= filters)
            found.append((group * filters + first, rows, group))
            first += rows
    return np.array(found, np.int64)


def _as_it_lies(p):
    """1 where an image is laid out as it lies; 2 where it need not be, for nothing is read beyond; else 0."""
    plain = p.stride_h == p.stride_w == 1 and p.pad_top == p.pad_left == 0
    if not plain or (p.h, p.w) != _padded(p):
        return 0
    return 1 + int(p.kh == p.kw == 1 and p.h * p.w % LANES == 0 and _vectors(p)[3] == 0)


def _together(p, depth):
    if _vectors(p)[3] or 4 * _scratch(p)[0] <= FAR_NBYTES:
        return 1
    return max(1, min(MOST_BLOCKS, NEAR_NBYTES // (4 * simd.ROWS * depth)))


def _scratch(p):
    high, pitch = _padded(p)
    image = p.c // p.group * p.stride_w * high * pitch + 2 * LANES
    image = -(-image // LANES) * LANES
    flat = _vectors(p)
    return image, simd.ROWS * len(flat[0]) * LANES if flat[3] else 0


def workspace(p):
    if made := _product(p):
        return _gemm().workspace(made)
    return 4 * sum(_scratch(_one_row(p)))


def _packed(p, weights):
    depth = p.c // p.group * p.kh * p.kw
    of = weights.reshape(p.m, depth)
    packed = [of[first : first + rows].T.reshape(-1) for first, rows, _ in _blocks(p)]
    return np.concatenate(packed).reshape(1, 1, 1, 1, -1)


def pack(p, inputs):
    if made := _product(p):
        return _gemm().pack(made, inputs)
    return [inputs[0], None if inputs[1] is None else _packed(p, inputs[1]), *inputs[2:]]


def bind(p, inputs, output, workspace):
    if made := _product(p):
        return _gemm().bind(made, inputs, output, workspace)
    p = _one_row(p)
    weights, first = packed_late(inputs[1], (1, 1, 1, 1, inputs[1].size), np.float32, partial(_packed, p))
    high, pitch = _padded(p)
    c, i, j = np.meshgrid(*map(np.arange, (p.c // p.group, p.kh, p.kw)), indexing="ij")
    row, column = i * p.dilation_h, j * p.dilation_w
    row = row % p.stride_h * (high // p.stride_h) + row // p.stride_h
    offsets = ((c * p.stride_w + column % p.stride_w) * high + row) * pitch + column // p.stride_w
    bases, columns, lanes, between = _vectors(p)
    blocks = _blocks(p)
    arguments = [
        len(blocks), p.c // p.group, p.h, p.w, high, pitch, p.stride_w, p.pad_top, p.pad_left, offsets.size,
        p.group, p.m, inputs[0], weights, inputs[2] if p.bias else np.zeros(p.m, np.float32), output, blocks,
        np.ascontiguousarray(offsets.reshape(-1)), bases, columns, lanes, len(bases), p.out_h * p.out_w,
        between, p.out_h, p.out_w, IN_TILE.get(p.activation, simd.PLAIN),
        0 if p.activation in IN_TILE else KINDS[p.activation], _scratch(p)[0],
        tiles(), p.stride_h, _as_it_lies(p),
        _together(p, offsets.size),
    ]  # fmt: skip
    call = Call(step, arguments, workspace, p.n, p.n * len(blocks), weights.nbytes)
    return sequence([*first, call])
