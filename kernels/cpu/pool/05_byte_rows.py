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
wins: an int8 is compared as the uint8 that is larger by 128. Both halves go over all rows at once: what they
find between the outputs is not picked.
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
    whole = simd.shifted(half, a[19] * wide)
    inside = max(0, min(w, wide - pad_left))
    if a[0] == 1:
        low, high = low * a[1], high * a[1]
    for plane in range(low, high):
        x = simd.shifted(simd.octets(a[15]), plane * h * w)
        y = simd.shifted(simd.octets(a[16]), plane * out_h * out_w)
        for first in range(0, out_h, band):
            rows = min(band, out_h - first)
            tall = (rows - 1) * stride_h + (kh - 1) * down + 1
            for r in range(tall):
                row, at = simd.shifted(half, r * wide), first * stride_h + r - pad_top
                if at < 0 or at >= h:
                    cleared(row, wide)
                else:
                    cleared(row, pad_left)
                    to = simd.shifted(row, pad_left)
                    if flip == 0:
                        simd.copied(to, simd.shifted(x, at * w), inside, 1)
                    else:
                        cleared(to, inside)
                        simd.largest(to, simd.shifted(x, at * w), inside, flip)
                    cleared(simd.shifted(to, inside), wide - pad_left - inside)
            dense = (tall - (kh - 1) * down) * wide
            simd.copied(whole, half, dense, 1)
            for r in range(1, kh):
                simd.largest(whole, simd.shifted(half, r * down * wide), dense, 0)
            of = whole
            if kw > 1:
                dense -= (kw - 1) * right
                simd.copied(half, whole, dense, 1)
                for t in range(1, kw):
                    simd.largest(half, simd.shifted(whole, t * right), dense, 0)
                of = half
            if flip > 0:
                for k in range(dense):
                    of[k] ^= FLIP
            for i in range(rows):
                to = simd.shifted(y, (first + i) * out_w)
                simd.copied(to, simd.shifted(of, i * stride_h * wide), out_w, stride_w)


def _wide(p):
    """Elements of a row that windows reach."""
    return (p.out_w - 1) * p.stride_w + (p.kw - 1) * p.dilation_w + 1


def _tall(p, rows):
    """Rows that windows of so many rows of the output reach."""
    return (rows - 1) * p.stride_h + (p.kh - 1) * p.dilation_h + 1


def _band(p):
    """Rows of the output at once."""
    rows = (PLACES // _wide(p) - (p.kh - 1) * p.dilation_h - 1) // p.stride_h + 1
    return max(1, min(p.out_h, rows))


def workspace(p):
    return -(-2 * _tall(p, _band(p)) * max(_wide(p), p.pad_left) // 4) * 4


def bind(p, inputs, output, workspace):
    arguments = [
        p.c, p.h, p.w, p.out_h, p.out_w, p.kh, p.kw, p.stride_h, p.stride_w, p.pad_top, p.pad_left,
        p.dilation_h, p.dilation_w, _wide(p), inputs[0], output, FLIP if p.dtype == "int8" else 0,
        _band(p), _tall(p, _band(p)),
    ]  # fmt: skip
    return Call(step, arguments, workspace, p.n, p.n * p.c)
