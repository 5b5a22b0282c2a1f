# op = "qconv"
# rung = 2
# name = "dot_tiles"
# idea = "Four numbers under a window in a word, maps too: one instruction adds up 16 × 4 products."
# compiled = true
# packs = true
# [needs]
# dtype = ["uint8", "int8"]
# to = ["int32", "float32", "uint8", "int8"]
"""Per some images, a group, some rows of the output and some maps: the images become planes of words, of
which a tile multiplies 48 columns with 8 maps at a time where they lie (kernels.cpu.dots).

A word holds four numbers of an image, and a plane these of one place after the other, padded with the zero
point. There are four ways to choose the four:

    channels    of one place: a plane serves all elements of a window that lie a stride apart. Rows are wider
                than those of the output; what is computed between these is left out.
    shifted     the same, a plane for each column of a window: nothing lies between the rows.
    columns     of one row, under one window: a plane serves a window's rows. Nothing lies between the rows.
    windows     any four under one window: planes are the matrix that im2col makes. Images follow each other.

The first copies least, the last leaves no lane of a vector idle where images are small: `_way` works out what
each would take. For a stride there is a plane for each of so many rows and columns, so that outputs side by
side read words side by side. Behind the packed weights lie their sums for each map, by which the image's zero
point comes off, and a map of ones: its sums are those of the windows, by which the weights' comes off.
"""

from functools import cache, partial
from typing import NamedTuple

import numpy as np

from kernels.cpu import simd
from kernels.cpu.common import packed_late, sequence
from kernels.cpu.compiled import Call, compiled, inlined
from kernels.cpu.quantized import (
    BYTES,
    behind,
    flips,
    in_float32,
    kind,
    numbers,
    signed,
    zero_points,
)
from kernels.cpu.simd import LANES, ROWS, WOVEN

WORDS = 1 << 16  # of a part's planes, as many as half of a core's own cache holds
PLACES = 1 << 12  # of a plane
PARTS = 4  # at least: else threads would wait for the last
NOTHING = -1  # instead of a channel
OF_CHANNELS = ("channels", "shifted")
WAYS = (*OF_CHANNELS, "columns", "windows")
WIDE = 3 * LANES  # maps of a tile whose lanes are maps


@inlined
def by_bytes(a, x, images, first, high, plane, line, to, zero):
    """One plane: its four rows of bytes in `line`, then these as words. to[k] is of x[k · stride + dx − pad],
    or the zero point."""
    h, w, area, size, pitch, stride, pad = a[2], a[3], a[2] * a[3], a[15], a[16], a[23], a[25]
    between, sources = a[4] * a[1] * area, simd.shifted(simd.integers(a[19]), plane * 12)
    for b in range(4):
        channel, dy, dx = sources[3 * b], sources[3 * b + 1], sources[3 * b + 2]
        if channel < 0:
            continue
        left = min(pitch, max(0, (pad - dx + stride - 1) // stride))
        right = max(left, min(pitch, (w + pad - dx + stride - 1) // stride))
        row = simd.shifted(line, b * size)
        for image in range(images):
            y = first * a[22] + dy - a[24]
            of = simd.shifted(x, image * between + channel * area + left * stride + dx - pad)
            for _ in range(high):
                start, end = left, right
                if y < 0 or y >= h:
                    start, end = pitch, pitch
                for k in range(start):
                    row[k] = zero
                if start < end:
                    simd.copied(simd.shifted(row, start), simd.shifted(of, y * w), end - start, stride)
                for k in range(end, pitch):
                    row[k] = zero
                row = simd.shifted(row, pitch)
                y += a[22]
    simd.woven(
        to, line, simd.shifted(line, size), simd.shifted(line, 2 * size), simd.shifted(line, 3 * size),
        images * high * pitch, a[34], 1,
    )  # fmt: skip


@inlined
def by_words(a, x, images, first, high, plane, line, to, zero, begin_of_x, end):
    """The same of four channels at the same place, of every column or every second one: rows become words at
    once. What is written beyond a row is written again. begin_of_x, end: from where on x may be read, and
    how far."""
    h, w, size, pitch, stride, pad = a[2], a[3], a[15], a[16], a[23], a[25]
    area, flip = h * w, a[34]
    between, sources = a[4] * a[1] * area, simd.shifted(simd.integers(a[19]), plane * 12)
    dx = sources[2]
    left = min(pitch, max(0, (pad - dx + stride - 1) // stride))
    right = max(left, min(pitch, (w + pad - dx + stride - 1) // stride))
    padding, reach = (zero ^ flip) * 0x01010101, 3 * area + (right - left) * stride + WOVEN
    row = to
    follow = stride == 1 and a[22] == 1 and pitch == w
    for image in range(images):
        y = first * a[22] + sources[1] - a[24]
        start = image * between + sources[0] * area + dx - pad
        top = min(high, max(0, -y))
        bottom = max(top, min(high, h - y))
        at, count = start + (y + top) * w, (bottom - top) * w
        if follow and at >= begin_of_x and at + 3 * area + count + WOVEN <= end:
            of = simd.shifted(x, at)  # all rows are one, but for what is not of the image
            simd.woven(
                simd.shifted(row, top * w), of, simd.shifted(of, area), simd.shifted(of, 2 * area),
                simd.shifted(of, 3 * area), count, flip, 1,
            )  # fmt: skip
            for k in range(top * w):
                row[k] = padding
            for k in range(bottom * w, high * w):
                row[k] = padding
            for k in range(left):
                for r in range(top, bottom):
                    row[r * w + k] = padding
            for k in range(right, w):
                for r in range(top, bottom):
                    row[r * w + k] = padding
            row = simd.shifted(row, high * w)
            continue
        start += left * stride
        for _ in range(high):
            begin, stop = left, right
            if y < 0 or y >= h:
                begin, stop = pitch, pitch
            for k in range(begin):
                row[k] = padding
            at, words = start + y * w, simd.shifted(row, begin)
            if at + reach <= end or begin == stop:
                of = simd.shifted(x, at)
                simd.woven(
                    words, of, simd.shifted(of, area), simd.shifted(of, 2 * area), simd.shifted(of, 3 * area),
                    stop - begin, flip, stride,
                )  # fmt: skip
            else:
                for b in range(4):
                    here = simd.shifted(x, at + b * area)
                    simd.copied(simd.shifted(line, b * size), here, stop - begin, stride)
                simd.woven(
                    words, line, simd.shifted(line, size), simd.shifted(line, 2 * size),
                    simd.shifted(line, 3 * size), stop - begin, flip, 1,
                )  # fmt: skip
            for k in range(stop, pitch):
                row[k] = padding
            row = simd.shifted(row, pitch)
            y += a[22]


@inlined
def by_maps(
    a, images, group, m, last, laid, sums, correction, zero, line, kept, y, with_zeros, ready, apart
):  # fmt: skip
    """Tiles of 8 outputs and 48 maps, which are turned round on their way to y. No rows of images are cut."""
    maps, area, quads, each = a[5], a[6], a[20], a[31]
    along, places, own = simd.integers(a[21]), simd.integers(a[47]), maps // a[4]
    panels = (own + LANES - 1) // LANES
    weights = simd.shifted(simd.words(a[26]), group * panels * LANES * quads)
    bias, scale, shift = simd.words(a[36]), simd.doubles(a[37]), simd.doubles(a[38])
    totals, count = simd.as_words(line), images * area
    if with_zeros == 1:
        for k in range(count):
            totals[k] = sums[places[k]]
    while m < last:
        many = min(3, (last - m + LANES - 1) // LANES)
        here, width = m - group * own, min(last - m, many * LANES)
        k = 0
        while k < count:
            rows = 8 if count - k >= 8 else (4 if count - k >= 4 else (2 if count - k >= 2 else 1))
            simd.dots_by_lane(
                rows, many, laid, simd.shifted(places, k), along, simd.shifted(weights, here * quads), quads,
                simd.shifted(kept, k * WIDE * each), WIDE, width, a[41], simd.doubles(a[40]),
                simd.shifted(correction, m), simd.shifted(bias, m), simd.shifted(scale, m),
                simd.shifted(shift, m), simd.shifted(zero, m), simd.shifted(totals, k), with_zeros, a[42],
                simd.shifted(ready, m), apart,
            )  # fmt: skip
            k += rows
        for i in range(width):
            for image in range(images):
                at = (image * maps + m + i) * area
                if each == 1:
                    to, of = simd.shifted(y, at), simd.shifted(kept, image * area * WIDE + i)
                    for k in range(area):
                        to[k] = of[k * WIDE]
                else:
                    whole = simd.shifted(simd.as_words(y), at)
                    sum_of = simd.shifted(simd.as_words(kept), image * area * WIDE + i)
                    for k in range(area):
                        whole[k] = sum_of[k * WIDE]
        m += width


@compiled
def step(a, low, high, scratch):
    channels, groups, maps, area, out_w = a[1], a[4], a[5], a[6], a[8]
    merged, band, bands, slices, of_slice = a[9], a[10], a[11], a[12], a[13]
    planes, size, pitch, beyond, quads = a[14], a[15], a[16], a[18], a[20]
    along, each, flip = simd.integers(a[21]), a[31], a[34]
    weights, weight_sums, ones = simd.words(a[26]), simd.words(a[27]), simd.words(a[28])
    x, y = simd.octets(a[29]), simd.octets(a[30])
    x_zero = simd.octets(a[32])[0]
    bias, scale, shift = simd.words(a[36]), simd.doubles(a[37]), simd.doubles(a[38])
    laid = simd.as_words(scratch)
    sums = simd.shifted(laid, planes * size + LANES)
    correction = simd.shifted(sums, size)
    zero = simd.shifted(correction, maps)
    ready = simd.shifted(zero, maps)
    none = simd.shifted(ready, 4 * maps)
    line = simd.as_octets(simd.shifted(none, LANES))
    kept = simd.shifted(line, 4 * size + 4 * LANES)
    none[0] = 0
    with_zeros = zero_points(
        0, maps, a[45], x_zero ^ flip, simd.octets(a[33]), a[39], a[35], weight_sums, correction, zero
    )
    apart = in_float32(
        ready, maps, 0, maps, a[45], a[41], correction, bias, scale, shift, a[42], simd.doubles(a[40])
    )  # fmt: skip
    start, stop, end = 0, a[44], a[44] * groups * channels * a[2] * a[3]
    own, per, there = maps // groups, groups * bands * slices, -1
    if a[0] == 1:
        start, stop = low, high
        low, high = 0, (stop - start + merged - 1) // merged * per
    for part in range(low, high):
        image = start + part // per * merged
        images = min(merged, stop - image)
        group = part // (bands * slices) % groups
        first = part // slices % bands * band
        rows = min(band, a[7] - first)
        tall = rows + beyond
        if part // slices != there:
            there = part // slices
            at = (image * groups + group) * channels * a[2] * a[3]
            for plane in range(planes):
                to, of = simd.shifted(laid, plane * size), simd.shifted(x, at)
                if a[43] == 1 and simd.integers(a[19])[plane * 12 + 9] >= 0:
                    by_words(a, of, images, first, tall, plane, line, to, x_zero, -at, end - at)
                else:
                    by_bytes(a, of, images, first, tall, plane, line, to, x_zero)
        count = ((images - 1) * tall + rows - 1) * pitch + out_w
        vectors = (count + LANES - 1) // LANES
        if with_zeros == 1:
            for v in range(vectors):
                simd.dots_by_row(
                    1, 1, ones, along, along, simd.shifted(laid, v * LANES), quads,
                    simd.as_octets(simd.shifted(sums, v * LANES)), LANES, LANES, 0, simd.doubles(a[40]), none,
                    none, scale, shift, none, none, 0, 0, none, 0,
                )  # fmt: skip
        if a[46] == 1:
            m = group * own + part % slices * of_slice
            by_maps(
                a, images, group, m, min(m + of_slice, (group + 1) * own), laid, sums, correction, zero, line,
                kept, simd.shifted(y, image * maps * area * each), with_zeros, ready, apart,
            )  # fmt: skip
            continue
        direct = images == 1 and pitch == out_w
        m = group * own + part % slices * of_slice
        last = min(m + of_slice, (group + 1) * own)
        while m < last:
            at_once = 8 if last - m >= 8 else (4 if last - m >= 4 else (2 if last - m >= 2 else 1))
            most = 3 if at_once >= 4 else 4
            to, row = simd.shifted(y, ((image * maps + m) * area + first * out_w) * each), area
            if not direct:
                to, row = kept, size
            v = 0
            while v < vectors:
                many = min(most, vectors - v)
                if many == 3 and vectors - v == 4:
                    many = 2  # twice: a vector alone would wait for each of its sums
                at = v * LANES
                simd.dots_by_row(
                    at_once, many, simd.shifted(weights, m * quads), along, along,
                    simd.shifted(laid, at), quads, simd.shifted(to, at * each), row, count - at,
                    a[41], simd.doubles(a[40]),
                    simd.shifted(correction, m), simd.shifted(bias, m), simd.shifted(scale, m),
                    simd.shifted(shift, m), simd.shifted(zero, m), simd.shifted(sums, at), with_zeros, a[42],
                    simd.shifted(ready, m), apart,
                )  # fmt: skip
                v += many
            if not direct:
                for i in range(at_once):
                    for which in range(images):
                        of = simd.shifted(kept, (i * size + which * tall * pitch) * each)
                        to = simd.shifted(y, (((image + which) * maps + m + i) * area + first * out_w) * each)
                        if pitch == out_w:
                            simd.copied(to, of, rows * out_w * each, 1)
                        else:
                            for r in range(rows):
                                simd.copied(
                                    simd.shifted(to, r * out_w * each), simd.shifted(of, r * pitch * each),
                                    out_w * each, 1,
                                )  # fmt: skip
            m += at_once


class _Way(NamedTuple):
    """How a convolution is done. merged: images at once; band: rows of the output, which take `beyond` more
    of a plane; slices: in so many are the maps of a group divided, each of `of_slice`; size: words from one
    plane to the next; sources: (planes, 4, 3) channel, row and column of what a plane begins with; along:
    where the words of a window lie; taps: (words, 4) which weight of a map each of their numbers is
    multiplied by, or NOTHING; words: whether a plane's numbers are channels of one place; by_maps: whether
    the lanes of a tile are maps, not outputs; places: where the first word of each output's window lies."""

    merged: int
    band: int
    bands: int
    beyond: int
    slices: int
    of_slice: int
    size: int
    pitch: int
    sources: np.ndarray
    along: np.ndarray
    taps: np.ndarray
    words: bool
    by_maps: bool
    places: np.ndarray


def _places(c, fours):
    """Words of a window, and the planes in which they lie. fours: one of WAYS."""
    channels, rows, columns = np.meshgrid(*map(np.arange, (c.c // c.group, c.kh, c.kw)), indexing="ij")
    index = (channels * c.kh + rows) * c.kw + columns
    if fours in OF_CHANNELS:  # (words, 4), windows row after row within four channels
        taps = _filled(index.reshape(len(index), -1), 0).transpose(0, 2, 1)
    elif fours == "columns":
        taps = _filled(index.transpose(0, 2, 1).reshape(-1, c.kh), 0).transpose(0, 2, 1)
    else:
        taps = _filled(index.reshape(-1, 1), 0).transpose(0, 2, 1)
    taps = np.ascontiguousarray(taps.reshape(-1, 4))
    planes: dict[tuple, int] = {}
    words = []
    for four in taps:
        at = [np.unravel_index(i, index.shape) if i >= 0 else None for i in four]
        places = [None if it is None else (it[0], it[1] * c.dilation_h, it[2] * c.dilation_w) for it in at]
        _, row, column = next(filter(None, places))
        down = 0 if fours == "windows" else row // c.stride_h
        right = column // c.stride_w if fours == "channels" else 0
        source = tuple(
            (NOTHING, 0, 0)
            if it is None
            else (int(it[0]), int(it[1] - down * c.stride_h), int(it[2] - right * c.stride_w))
            for it in places
        )
        words.append((planes.setdefault(source, len(planes)), int(down), int(right)))
    return taps, np.array(list(planes), np.int64).reshape(-1, 4, 3), words


def _filled(index, axis):
    """The axis in fours: (fours, 4, …)."""
    more = -len(index) % 4
    index = np.pad(index, [(0, more), (0, 0)], constant_values=NOTHING)
    return index.reshape(-1, 4, index.shape[1])


@cache
def _way(c):
    """The way that seems to take the fewest cycles."""
    ways = []
    for fours in WAYS:
        taps, sources, words = _places(c, fours)
        down = max(word[1] for word in words)
        pitch = c.out_w + max(word[2] for word in words)
        merged = 1
        while True:
            for by_maps in (False, True):
                found = _cycles(c, len(sources), len(words), down, pitch, merged, fours, by_maps)
                ways.append((*found, fours, taps, sources, words, down, pitch, merged, by_maps))
            if merged == c.n:
                break
            merged = min(2 * merged, c.n)
    best = min(ways, key=lambda way: way[0])
    _, band, size, fours, taps, sources, words, down, pitch, merged, by_maps = best
    bands, own = -(-c.out_h // band), c.m // c.group
    least = WIDE if by_maps else ROWS
    blocks = max(1, own // least)
    parts = -(-c.n // merged) * c.group * bands
    of_slice = -(-blocks // max(1, min(blocks, -(-PARTS // parts)))) * least
    along = [(plane * size) + down * pitch + right for plane, down, right in words]
    image, i, j = np.ogrid[:merged, : c.out_h, : c.out_w]
    places = ((image * (band + down) + i) * pitch + j).reshape(-1) if by_maps else np.zeros(1, np.int64)
    return _Way(
        merged, band, bands, down, -(-own // of_slice), of_slice, size, pitch, sources,
        np.array(along, np.int64), taps, fours in OF_CHANNELS and c.stride_w <= 2, by_maps,
        places,
    )  # fmt: skip


def _cycles(c, planes, quads, beyond, pitch, merged, fours, by_maps):
    """(cycles of all images, rows of a part, words of a plane), roughly: two dots a cycle, of a vector alone
    less."""
    own = c.m // c.group
    band = min(PLACES, WORDS // planes) // (merged * pitch) - beyond
    if (merged > 1 or by_maps) and band < c.out_h:
        return np.inf, 0, 0
    band = max(1, min(band, c.out_h))
    bands = -(-c.out_h // band)
    band = -(-c.out_h // bands)
    high = band + beyond
    size = -(-(merged * high * pitch) // LANES) * LANES
    size += LANES * (size % 256 == 0)  # planes do not all begin in the same set of a cache
    places = ((merged - 1) * high + band - 1) * pitch + c.out_w
    vectors = -(-places // LANES)
    threes = vectors // 3 * 12 + (0, 8, 9)[vectors % 3]
    dots = -(-own // ROWS) * quads * threes + own * vectors * 10
    if fours in OF_CHANNELS and pitch == c.w and c.stride_h == c.stride_w == 1:
        laying = planes * merged * (40 + high * (4 + pitch * 4 / LANES))
    elif fours in OF_CHANNELS and c.stride_w <= 2:
        laying = planes * merged * high * (20 + 4 * -(-pitch // LANES))
    else:
        row = 20 + pitch / 8 * c.stride_w
        laying = planes * (4 * merged * high * row + places / 2)
    copying = 0.0
    if pitch != c.out_w:
        copying = own * merged * band * (10 + c.out_w / 16)
    elif merged > 1:
        copying = own * merged * (10 + band * c.out_w / 16)
    if by_maps:
        outputs, panels = merged * c.out_h * c.out_w, -(-own // LANES)
        tiles = outputs // ROWS + 0.6 * (outputs % ROWS).bit_count()
        dots = tiles * quads * (panels // 3 * 16.5 + (0, 7, 11)[panels % 3]) + tiles * panels * ROWS * 12
        copying = 1.5 * own * outputs
    return (dots + laying + copying) * bands * c.group * -(-c.n // merged), band, size


def workspace(p):
    way, planes = _way(p.product), len(_way(p.product).sources)
    words = planes * way.size + 2 * LANES + way.size + 6 * p.product.m
    kept = len(way.places) * WIDE if way.by_maps else ROWS * way.size
    nbytes = 4 * way.size + 4 * LANES + kept * (1 if kind(p) == BYTES else 4)
    return 4 * words + -(-nbytes // 4) * 4


def _packed(p, weights):
    """Maps in words, those of a tile side by side; the sums of each; a map of ones; one behind the other."""
    c, taps = p.product, _way(p.product).taps
    own = c.m // c.group
    into = np.zeros(_nbytes(p), np.int8)
    of_maps = 4 * c.group * _lanes(c) * len(taps)
    held, rest = into[:of_maps].reshape(c.group * _lanes(c), -1), into[of_maps:]
    values = signed(p, weights).reshape(c.m, p.terms)
    each = np.where(taps == NOTHING, np.int8(0), values[:, taps])  # (maps, words, 4)
    if _way(c).by_maps:
        whole = np.zeros((c.group, _lanes(c), *taps.shape), np.int8)
        whole[:, :own] = each.reshape(c.group, own, *taps.shape)
        panels = held.reshape(c.group, -1, len(taps), LANES, 4)
        panels[...] = whole.reshape(c.group, -1, LANES, *taps.shape).transpose(0, 1, 3, 2, 4)
    for group in range(0, 0 if _way(c).by_maps else c.m, own):
        first = 0
        while first < own:
            rows = next(rows for rows in simd.DOT_ROWS if rows <= own - first)
            maps = slice(group + first, group + first + rows)
            held[maps] = each[maps].transpose(1, 0, 2).reshape(rows, -1)
            first += rows
    rest[: 4 * c.m].view(np.int32)[:] = values.sum(axis=1, dtype=np.int32)
    rest[4 * c.m :] = (taps != NOTHING).reshape(-1)
    return into


def _lanes(c):
    """Maps of a group, with those that are added to fill vectors."""
    own = c.m // c.group
    return -(-own // LANES) * LANES if _way(c).by_maps else own


def _nbytes(p):
    c, quads = p.product, len(_way(p.product).taps)
    return 4 * (c.group * _lanes(c) * quads + c.m + quads)


def pack(p, inputs):
    return [inputs[0], None if inputs[1] is None else _packed(p, inputs[1]), *inputs[2:]]


def bind(p, inputs, output, workspace):
    c, way = p.product, _way(p.product)
    weights, first = packed_late(inputs[1], (_nbytes(p),), np.int8, partial(_packed, p))
    quads, area = len(way.taps), c.out_h * c.out_w
    of_maps = 4 * c.group * _lanes(c) * quads
    held, sums, ones = weights[:of_maps], weights[of_maps:][: 4 * c.m], weights[of_maps + 4 * c.m :]
    bias, scale, shift = behind(p, inputs)
    flip, weight_flip = flips(p)
    arguments = [
        c.c // c.group, c.h, c.w, c.group, c.m, area, c.out_h, c.out_w, way.merged, way.band, way.bands,
        way.slices, way.of_slice, len(way.sources), way.size, way.pitch, way.band + way.beyond, way.beyond,
        np.ascontiguousarray(way.sources), quads, way.along, c.stride_h, c.stride_w, c.pad_top, c.pad_left,
        held, sums, ones, inputs[0], output, output.itemsize, inputs[2], inputs[3], flip, weight_flip, bias,
        scale, shift, int(p.weight_zeros > 1), numbers(p), kind(p), int(p.shifted), int(way.words), c.n,
        p.terms, int(way.by_maps), way.places,
    ]  # fmt: skip
    parts = -(-c.n // way.merged) * c.group * way.bands * way.slices
    call = Call(step, arguments, workspace, c.n, parts, weights.nbytes)
    return sequence([*first, call])
