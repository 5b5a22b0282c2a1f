# op = "pool"
# rung = 3
# name = "compiled"
# idea = "The same two halves as compiled loops, row by row, without Python in between."
# compiled = true
"""Each output row: the window's rows combined into one row of scratch, then its columns out of that row."""

import numpy as np

from kernels.cpu import simd
from kernels.cpu.common import counts
from kernels.cpu.compiled import Call, compiled
from kernels.cpu.loops import KINDS, activate, pool_plane, pool_words


@compiled
def step(a, low, high, scratch):
    channels, inner, outer = a[1], a[2], a[3]
    x, y, divisors = simd.floats(a[4]), simd.floats(a[5]), simd.floats(a[6])
    if a[0] == 1:
        low, high = low * channels, high * channels
    for plane in range(low, high):
        of, to = simd.shifted(x, plane * inner), simd.shifted(y, plane * outer)
        pool_plane(a, 8, of, divisors, to, scratch)
    activate(a[7], simd.shifted(y, low * outer), (high - low) * outer)


def workspace(p):
    return 4 * p.w


def bind(p, inputs, output, workspace):
    divisors = np.zeros(1, np.float32) if p.kind == "max" else counts(p)
    sizes = [p.c, p.h * p.w, p.out_h * p.out_w]
    arguments = [*sizes, inputs[0], output, divisors, KINDS[p.activation], *pool_words(p)]
    return Call(step, arguments, workspace, images=p.n, parts=p.n * p.c)
