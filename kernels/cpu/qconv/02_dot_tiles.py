# op = "qconv"
# rung = 2
# name = "dot_tiles"
# idea = "Windows as words of four numbers, maps too: one instruction adds up 16 × 4 products."
# compiled = true
# packs = true
# [needs]
# dtype = ["uint8", "int8"]
# to = ["int32", "float32", "uint8", "int8"]
"""Per image, group and some outputs of it: the windows become a matrix of words, of which a tile multiplies
48 columns with 8 maps at a time (kernels.cpu.dots).

The image lies padded with its zero point in scratch, for a stride s along the rows as s images of every s-th
column, so that outputs side by side read inputs side by side. Behind the packed weights lie their sums for
each map, by which the image's zero point comes off, and a map of ones: its sums are those of the windows, by
which the weights' comes off.
"""

import numpy as np

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled, inlined
from kernels.cpu.quantized import behind, flips, kind, numbers, signed, zero_points
from kernels.cpu.simd import LANES

WORDS = 1 << 16  # of a part's matrix, as many as half of a core's own cache holds
WIDE = 3 * LANES  # outputs that a tile of many rows has


@inlined
def lay_out(a, x, to, zero, flip):
    """The channels of a group of an image, padded with its zero point and divided by columns."""
    channels, h, w, high, pitch, phases = a[2], a[3], a[4], a[5], a[6], a[7]
    pad_top, pad_left = a[8], a[9]
    for c in range(channels):
        for phase in range(phases):
            left = min(pitch, max(0, (pad_left - phase + phases - 1) // phases))
            right = max(left, min(pitch, (w + pad_left - phase + phases - 1) // phases))
            for at in range(high):
                row = simd.shifted(to, ((c * phases + phase) * high + at) * pitch)
                y = at - pad_top
                if y < 0 or y >= h:
                    for k in range(pitch):
                        row[k] = zero
                    continue
                for k in range(left):
                    row[k] = zero
                of = simd.shifted(x, (c * h + y) * w + phase - pad_left)
                if phases == 1:
                    for k in range(left, right):
                        row[k] = of[k] ^ flip
                else:
                    for k in range(left, right):
                        row[k] = of[k * phases] ^ flip
                for k in range(right, pitch):
                    row[k] = zero


@inlined
def matrix_of(a, laid, line, first, count, columns):
    """The words of `count` outputs from `first` on: vector after vector, along the sum. line: 4 × chunk
    numbers, and a vector's more."""
    terms, quads, out_w, chunk = a[10], a[11], a[12], a[13]
    offsets, row = simd.integers(a[14]), a[15] * a[6]
    vectors = (count + LANES - 1) // LANES
    for q in range(quads):
        for b in range(4):
            if 4 * q + b < terms:
                of = simd.shifted(laid, offsets[4 * q + b])
                to = simd.shifted(line, b * chunk)
                done, i, j = 0, first // out_w, first % out_w
                while done < count:
                    many = min(out_w - j, count - done)
                    here, there = simd.shifted(of, i * row + j), simd.shifted(to, done)
                    # 16 at a time: what is beyond is written again, or belongs to the next number.
                    for k in range(0, many, LANES):
                        for lane in range(LANES):
                            there[k + lane] = here[k + lane]
                    done += many
                    i, j = i + 1, 0
        for v in range(vectors):
            at = simd.shifted(line, v * LANES)
            to = simd.shifted(columns, (v * quads + q) * LANES)
            for lane in range(LANES):
                to[lane] = (
                    at[lane] | at[chunk + lane] << 8 | at[2 * chunk + lane] << 16 | at[3 * chunk + lane] << 24
                )


@compiled
def step(a, low, high, scratch):
    chunks, channels, quads, chunk, groups, maps = a[1], a[2], a[11], a[13], a[16], a[17]
    area, terms, each = a[18], a[10], a[19]
    x, y = simd.octets(a[20]), simd.octets(a[21])
    weights, weight_sums, ones = simd.words(a[22]), simd.words(a[23]), simd.words(a[24])
    flip = a[27]
    x_zero = simd.octets(a[25])[0] ^ flip
    bias, scale, shift = simd.words(a[29]), simd.doubles(a[30]), simd.doubles(a[31])
    columns = simd.as_words(scratch)
    sums = simd.shifted(columns, chunk * quads)
    correction = simd.shifted(sums, chunk)
    zero = simd.shifted(correction, maps)
    none = simd.shifted(zero, maps)
    line = simd.as_octets(simd.shifted(none, LANES))
    laid = simd.shifted(line, 4 * chunk + LANES)
    none[0] = 0
    with_zeros = zero_points(
        0, maps, terms, x_zero, simd.octets(a[26]), a[32], a[28], weight_sums, correction, zero
    )
    if a[0] == 1:
        low, high = low * groups * chunks, high * groups * chunks
    own, there = maps // groups, -1
    for part in range(low, high):
        which, first = part // chunks, part % chunks * chunk
        image, group = which // groups, which % groups
        if which != there:
            there = which
            lay_out(a, simd.shifted(x, which * channels * a[3] * a[4]), laid, x_zero, flip)
        count = min(chunk, area - first)
        matrix_of(a, laid, line, first, count, columns)
        vectors = (count + LANES - 1) // LANES
        if with_zeros == 1:
            for v in range(vectors):
                simd.dots_by_row(
                    1, 1, ones, quads, simd.shifted(columns, v * quads * LANES), quads,
                    simd.as_octets(simd.shifted(sums, v * LANES)), LANES, LANES, 0, simd.doubles(a[33]), none,
                    none, scale, shift, none, none, 0, 0,
                )  # fmt: skip
        r = 0
        while r < own:
            rows = 8 if own - r >= 8 else (4 if own - r >= 4 else (2 if own - r >= 2 else 1))
            most = 3 if rows >= 4 else 4
            m = group * own + r
            v = 0
            while v < vectors:
                many = min(most, vectors - v)
                at = v * LANES
                simd.dots_by_row(
                    rows, many, simd.shifted(weights, m * quads), quads,
                    simd.shifted(columns, at * quads), quads,
                    simd.shifted(y, ((image * maps + m) * area + first + at) * each), area, count - at, a[34],
                    simd.doubles(a[33]), simd.shifted(correction, m), simd.shifted(bias, m),
                    simd.shifted(scale, m), simd.shifted(shift, m), simd.shifted(zero, m),
                    simd.shifted(sums, at), with_zeros, a[35],
                )  # fmt: skip
                v += many
            r += rows


def _padded(c):
    """(rows, elements of a row, divided by columns)"""
    high = (c.out_h - 1) * c.stride_h + (c.kh - 1) * c.dilation_h + 1
    wide = (c.out_w - 1) * c.stride_w + (c.kw - 1) * c.dilation_w + 1
    return high, -(-wide // c.stride_w)


def _sizes(p):
    """(words along the sum, outputs of a part, bytes of a padded image)"""
    c = p.product
    quads, area = -(-p.terms // 4), c.out_h * c.out_w
    chunk = max(1, WORDS // quads // WIDE) * WIDE
    if c.n * c.group < 4:  # else threads would wait for the last
        chunk = min(chunk, max(1, -(-area // 4 // WIDE)) * WIDE)
    high, pitch = _padded(c)
    laid = c.c // c.group * c.stride_w * high * pitch + LANES
    return quads, min(chunk, -(-area // LANES) * LANES), laid


def workspace(p):
    quads, chunk, laid = _sizes(p)
    return 4 * (chunk * quads + chunk + 2 * p.product.m + LANES) + 4 * chunk + LANES + -(-laid // 4) * 4


def _packed(p, weights):
    """Maps in words, the sums of each, and a map of ones, one behind the other."""
    m, quads = p.product.m, _sizes(p)[0]
    into = np.zeros(_nbytes(p), np.int8)
    held, rest = into[: m * 4 * quads].reshape(m, 4 * quads), into[m * 4 * quads :]
    held[:, : p.terms] = signed(p, weights).reshape(m, p.terms)
    rest[: 4 * m].view(np.int32)[:] = held.sum(axis=1, dtype=np.int32)
    rest[4 * m :][: p.terms] = 1
    return into


def _nbytes(p):
    m, quads = p.product.m, _sizes(p)[0]
    return 4 * (m * quads + m + quads)


def pack(p, inputs):
    if inputs[1] is None:
        return list(inputs)
    return [inputs[0], _packed(p, inputs[1]), *inputs[2:]]


def bind(p, inputs, output, workspace):
    c = p.product
    weights, late = inputs[1], None
    if weights.shape != (_nbytes(p),):
        late, weights = weights, np.zeros(_nbytes(p), np.int8)
    high, pitch = _padded(c)
    quads, chunk, _ = _sizes(p)
    area = c.out_h * c.out_w
    chunks = -(-area // chunk)
    k, i, j = np.meshgrid(*map(np.arange, (c.c // c.group, c.kh, c.kw)), indexing="ij")
    row, column = i * c.dilation_h, j * c.dilation_w
    offsets = ((k * c.stride_w + column % c.stride_w) * high + row) * pitch + column // c.stride_w
    of_maps = 4 * c.m * quads
    held, sums, ones = weights[:of_maps], weights[of_maps:][: 4 * c.m], weights[of_maps + 4 * c.m :]
    bias, scale, shift = behind(p, inputs)
    arguments = [
        chunks, c.c // c.group, c.h, c.w, high, pitch, c.stride_w, c.pad_top, c.pad_left, p.terms, quads,
        c.out_w, chunk, np.ascontiguousarray(offsets.reshape(-1)), c.stride_h, c.group, c.m, area,
        output.itemsize, inputs[0], output, held, sums, ones, inputs[2], inputs[3], *flips(p), bias, scale,
        shift, int(p.weight_zeros > 1), numbers(p), kind(p), int(p.shifted),
    ]  # fmt: skip
    call = Call(step, arguments, workspace, c.n, c.n * c.group * chunks, weights.nbytes)
    if late is None:
        return call

    def run():
        weights[:] = _packed(p, late)
        call()

    return run
