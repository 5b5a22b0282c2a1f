# op = "qconv"
# rung = 3
# name = "depthwise"
# idea = "A channel is multiplied where it lies: four bytes of a row are a word, for 16 outputs at once."
# compiled = true
# packs = true
# [needs]
# dtype = ["uint8", "int8"]
# to = ["int32", "float32", "uint8", "int8"]
# depthwise = true
# dilation = 1
# stride_max = 4
"""Nothing is laid out before: a window of few numbers costs less than its copy (kernels.cpu.windows).

A table, the same for every plane, says where each vector's windows begin and which of their bytes lie outside
the image (kernels.cpu.planes). What is read beside a plane is other planes'; the first and the last of all
are copied, with room around.
"""

from functools import cache, partial

import numpy as np

from kernels.cpu import planes, simd
from kernels.cpu.common import packed_late, sequence
from kernels.cpu.compiled import Call, compiled
from kernels.cpu.planes import with_room
from kernels.cpu.quantized import behind, flips, in_float32, kind, numbers, signed, zero_points
from kernels.cpu.simd import LANES

REACH = 4 * LANES  # bytes that are read at once, at most


@compiled
def step(a, low, high, scratch):
    maps, channels, of_plane, of_answer = a[1], a[2], a[3], a[4]
    vectors, rows, quads, row_step, stride = a[5], a[6], a[7], a[8], a[9]
    before, beyond, images, terms, each = a[10], a[11], a[12], a[13], a[14]
    x, y, table = simd.octets(a[15]), simd.octets(a[16]), simd.integers(a[17])
    weights, weight_sums, ones = simd.words(a[18]), simd.words(a[19]), simd.words(a[20])
    flip, numbers_behind, to, with_shift = a[23], simd.doubles(a[29]), a[30], a[31]
    bias, scale, shift = simd.words(a[25]), simd.doubles(a[26]), simd.doubles(a[27])
    x_zero = simd.octets(a[21])[0]
    kept = simd.as_words(scratch)
    correction = simd.shifted(kept, 2 * LANES)
    zero = simd.shifted(correction, maps)
    ready = simd.shifted(zero, maps)
    alone = simd.shifted(simd.as_octets(simd.shifted(ready, 4 * maps)), before)
    if a[0] == 1:
        low, high = low * maps, high * maps
    first, last = (0, maps) if high - low >= maps else (low % maps, (high - 1) % maps + 1)
    if first >= last:
        first, last = 0, maps
    with_zeros = zero_points(
        first, last - first, terms, x_zero ^ flip, simd.octets(a[22]), a[28], a[24], weight_sums,
        simd.shifted(correction, first), simd.shifted(zero, first),
    )  # fmt: skip
    apart = in_float32(
        simd.shifted(ready, first), maps, first, last - first, terms, to, simd.shifted(correction, first),
        bias, scale, shift, with_shift, numbers_behind,
    )  # fmt: skip
    for part in range(low, high):
        image, m = part // maps, part % maps
        at = (image * channels + m // (maps // channels)) * of_plane
        plane = with_room(x, at, of_plane, before, beyond, images * channels * of_plane, alone, 1)
        simd.under_windows(
            plane, table, vectors, rows, quads, row_step, stride, flip, x_zero,
            simd.shifted(weights, m * rows * quads), ones, kept, simd.shifted(y, part * of_answer * each),
            each, to, numbers_behind, simd.shifted(correction, m), simd.shifted(bias, m),
            simd.shifted(scale, m), simd.shifted(shift, m), simd.shifted(zero, m), with_zeros, with_shift,
            simd.shifted(ready, m), apart,
        )  # fmt: skip


def _quads(c):
    """Words of a row of the window."""
    return -(-c.kw // 4)


@cache
def _table(c):
    """See kernels.cpu.intrinsics.under_windows."""
    rows, columns = np.divmod(np.arange(c.kh * 4 * _quads(c)), 4 * _quads(c))
    seen = planes.inside(c, LANES, rows, columns) & (columns < c.kw)[:, None]
    # (vectors, rows, quads, 4, lanes): the four bytes of a lane lie side by side.
    seen = seen.reshape(len(seen), -1, 4, LANES).swapaxes(2, 3)
    return planes.told(c, LANES, seen.reshape(*seen.shape[:2], -1))


def _room(c):
    return planes.room(c, LANES, REACH, (c.kh - 1) * c.w + 4 * (_quads(c) - 1))


def workspace(p):
    c = p.product
    return 4 * (2 * LANES + 6 * c.m) + -(-(sum(_room(c)) + c.h * c.w) // 4) * 4


def _sizes(p):
    """Bytes of the weights in words, and of all that is packed."""
    c = p.product
    words = c.kh * _quads(c)
    return 4 * c.m * words, 4 * (c.m * words + c.m + words)


def _packed(p, weights):
    """The rows of each map's window in words; the sums of each map; a window of ones; in this order."""
    c = p.product
    into = np.zeros(_sizes(p)[1], np.int8)
    values = signed(p, weights).reshape(c.m, c.kh, c.kw)
    row = 4 * _quads(c)
    into[: _sizes(p)[0]].reshape(c.m, c.kh, row)[..., : c.kw] = values
    rest = into[_sizes(p)[0] :]
    rest[: 4 * c.m].view(np.int32)[:] = values.sum(axis=(1, 2), dtype=np.int32)
    rest[4 * c.m :].reshape(c.kh, row)[:, : c.kw] = 1
    return into


def pack(p, inputs):
    return [inputs[0], None if inputs[1] is None else _packed(p, inputs[1]), *inputs[2:]]


def bind(p, inputs, output, workspace):
    c = p.product
    of_maps, whole = _sizes(p)
    weights, first = packed_late(inputs[1], (whole,), np.int8, partial(_packed, p))
    held, sums, ones = weights[:of_maps], weights[of_maps:][: 4 * c.m], weights[of_maps + 4 * c.m :]
    table = _table(c)
    flip, weight_flip = flips(p)
    arguments = [
        c.m, c.c, c.h * c.w, c.out_h * c.out_w, len(table), c.kh, _quads(c), c.w, c.stride_w, *_room(c), c.n,
        p.terms, output.itemsize, inputs[0], output, table, held, sums, ones, inputs[2], inputs[3], flip,
        weight_flip, *behind(p, inputs), int(p.weight_zeros > 1), numbers(p), kind(p), int(p.shifted),
    ]  # fmt: skip
    call = Call(step, arguments, workspace, c.n, c.n * c.m, weights.nbytes)
    return sequence([*first, call])
