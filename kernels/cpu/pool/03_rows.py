# op = "pool"
# rung = 3
# name = "rows"
# idea = "The same two halves as compiled loops, row by row, without Python in between."
# compiled = true
# prefers = {require = ["out_h * out_w > 1"]}
"""Each output row: the window's rows combined into one row of scratch, then its columns out of that row."""

import numpy as np

from kernels.cpu import simd
from kernels.cpu.common import counts
from kernels.cpu.compiled import Call, compiled, inlined
from kernels.cpu.loops import KINDS, activate, larger, pool_plane, pool_words
from kernels.cpu.simd import LANES


@inlined
def halved(x, count, y, w):
    """Maxima of 2 × 2 pixels, of rows of w pixels that follow each other, `count` in all.

    16 at a time, whatever a row's end: what lies beyond it is written again with the next row. Where that
    would reach beyond the last, the rest is done one by one.
    """
    out_w = w // 2
    rows = count // (2 * w)
    wide = (out_w + LANES - 1) // LANES * LANES
    row = 0
    while row < rows and 2 * row * w + w + 2 * wide <= count and row * out_w + wide <= rows * out_w:
        for first in range(0, wide, LANES):
            up = simd.shifted(x, 2 * row * w + 2 * first)
            to = simd.shifted(y, row * out_w + first)
            for k in range(LANES):
                to[k] = larger(larger(up[2 * k], up[2 * k + 1]), larger(up[w + 2 * k], up[w + 2 * k + 1]))
        row += 1
    for r in range(row, rows):
        up, to = simd.shifted(x, 2 * r * w), simd.shifted(y, r * out_w)
        for k in range(out_w):
            to[k] = larger(larger(up[2 * k], up[2 * k + 1]), larger(up[w + 2 * k], up[w + 2 * k + 1]))


@compiled
def step(a, low, high, scratch):
    channels, inner, outer = a[1], a[2], a[3]
    x, y, divisors = simd.floats(a[4]), simd.floats(a[5]), simd.floats(a[6])
    if a[0] == 1:
        low, high = low * channels, high * channels
    if a[8] == 1:
        halved(simd.shifted(x, low * inner), (high - low) * inner, simd.shifted(y, low * outer), a[11])
    for plane in range(low, low if a[8] == 1 else high):
        of, to = simd.shifted(x, plane * inner), simd.shifted(y, plane * outer)
        pool_plane(a, 9, of, divisors, to, scratch)
    activate(a[7], simd.shifted(y, low * outer), (high - low) * outer)


def workspace(p):
    return 4 * p.w


def _halves(p):
    """Whether each pixel belongs to one window of 2 × 2."""
    even = (p.kh, p.kw, p.stride_h, p.stride_w, p.dilation_h, p.dilation_w) == (2, 2, 2, 2, 1, 1)
    return p.kind == "max" and even and (p.h, p.w, p.pad_top, p.pad_left) == (2 * p.out_h, 2 * p.out_w, 0, 0)


def bind(p, inputs, output, workspace):
    divisors = np.zeros(1, np.float32) if p.kind == "max" else counts(p)
    sizes = [p.c, p.h * p.w, p.out_h * p.out_w]
    arguments = [*sizes, inputs[0], output, divisors, KINDS[p.activation], int(_halves(p)), *pool_words(p)]
    return Call(step, arguments, workspace, images=p.n, parts=p.n * p.c)
