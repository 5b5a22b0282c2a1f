# op = "lrn_pool"
# rung = 2
# name = "plane_by_plane"
# idea = "Normalises one channel into scratch and pools it at once, both in one compiled function."
# compiled = true
"""A pool looks at one channel alone: that much of the normalised image is in scratch, and no more."""

import numpy as np

from kernels.cpu import simd
from kernels.cpu.common import counts
from kernels.cpu.compiled import Call, compiled
from kernels.cpu.loops import lrn_plane, lrn_words, pool_plane, pool_words


@compiled
def step(a, low, high, scratch):
    channels, inner, outer = a[1], a[2], a[3]
    x, y, divisors = simd.floats(a[4]), simd.floats(a[5]), simd.floats(a[6])
    if a[0] == 1:
        low, high = low * channels, high * channels
    for plane in range(low, high):
        image = simd.shifted(x, plane // channels * channels * inner)
        lrn_plane(a, 7, image, plane % channels, channels, inner, scratch)
        row = simd.shifted(scratch, inner)
        pool_plane(a, 12, scratch, divisors, simd.shifted(y, plane * outer), row)


def workspace(p):
    return 4 * (p.h * p.w + p.w)


def bind(p, inputs, output, workspace):
    divisors = np.zeros(1, np.float32) if p.kind == "max" else counts(p.pool)
    sizes = [p.c, p.h * p.w, p.out_h * p.out_w]
    arguments = [*sizes, inputs[0], output, divisors, *lrn_words(p), *pool_words(p)]
    return Call(step, arguments, workspace, images=p.n, parts=p.n * p.c)
