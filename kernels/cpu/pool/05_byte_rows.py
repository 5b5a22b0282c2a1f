# op = "pool"
# rung = 5
# name = "byte_rows"
# idea = "The rows of a window, then its columns, as vectors of bytes; a stride picks from these at the end."
# compiled = true
# [needs]
# kind = ["max"]
# activation = ["none"]
# dtype = ["uint8", "int8"]
"""A plane at a time, or some rows of its output, in two pieces of scratch. Padding is 0 there, which never
wins: an int8 is compared as the uint8 that is larger by 128. The second half goes over all rows at once: what
it finds between them is not picked.
"""

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled, inlined
from kernels.cpu.quantized import FLIP

PLACES = 1 << 13  # of the scratch, which stays in a core's nearest cache


@inlined
def cleared(row, count):
    for k in range(count):
        row[k] = 0


@compiled
def step(a, low, high, scratch):
    h, w, out_h, out_w, kh, kw = a[2], a[3], a[4], a[5], a[6], a[7]
    stride_h, stride_w, pad_top, pad_left = a[8], a[9], a[10], a[11]
    down, right, wide, flip, band = a[12], a[13], a[14], a[17], a[18]
    half = simd.as_octets(scratch)
    whole = simd.shifted(half, band * wide)
    inside = min(w, wide - pad_left)
    if a[0] == 1:
        low, high = low * a[1], high * a[1]
    for plane in range(low, high):
        x = simd.shifted(simd.octets(a[15]), plane * h * w)
        y = simd.shifted(simd.octets(a[16]), plane * out_h * out_w)
        for first in range(0, out_h, band):
            rows = min(band, out_h - first)
            cleared(half, rows * wide)
            for i in range(rows):
                to = simd.shifted(half, i * wide + pad_left)
                for r in range(kh):
                    at = (first + i) * stride_h + r * down - pad_top
                    if at >= 0 and at < h:
                        simd.largest(to, simd.shifted(x, at * w), inside, flip)
            of, dense = half, rows * wide - (kw - 1) * right
            if kw > 1:
                cleared(whole, dense)
                for t in range(kw):
                    simd.largest(whole, simd.shifted(half, t * right), dense, 0)
                of = whole
            if flip > 0:
                for k in range(dense):
                    of[k] ^= FLIP
            for i in range(rows):
                to = simd.shifted(y, (first + i) * out_w)
                simd.copied(to, simd.shifted(of, i * wide), out_w, stride_w)


def _wide(p):
    """Elements of a row that windows reach."""
    return (p.out_w - 1) * p.stride_w + (p.kw - 1) * p.dilation_w + 1


def _band(p):
    """Rows of the output at once."""
    return max(1, min(p.out_h, PLACES // _wide(p)))


def workspace(p):
    return -(-2 * _band(p) * _wide(p) // 4) * 4


def bind(p, inputs, output, workspace):
    arguments = [
        p.c, p.h, p.w, p.out_h, p.out_w, p.kh, p.kw, p.stride_h, p.stride_w, p.pad_top, p.pad_left,
        p.dilation_h, p.dilation_w, _wide(p), inputs[0], output, FLIP if p.dtype == "int8" else 0,
        _band(p),
    ]  # fmt: skip
    return Call(step, arguments, workspace, p.n, p.n * p.c)
