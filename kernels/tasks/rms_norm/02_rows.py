# op = "rms_norm"
# rung = 2
# name = "rows"
# idea = "A compiled loop: a row stays in the nearest cache between the sum of its squares and its scaling."
# compiled = true
"""y = x / √(mean(x²) + ε) · weight, row by row."""

import numpy as np

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled
from kernels.cpu.loops import ZERO

LANES = 16  # sums side by side
EPSILON = 1e-5


@compiled
def step(a, low, high, scratch):
    width = a[1]
    weight = simd.floats(a[3])
    for row in range(low, high):
        x = simd.shifted(simd.floats(a[2]), row * width)
        y = simd.shifted(simd.floats(a[4]), row * width)
        for lane in range(LANES):
            scratch[lane] = ZERO
        i = 0
        while i + LANES <= width:
            for lane in range(LANES):
                scratch[lane] += x[i + lane] * x[i + lane]
            i += LANES
        while i < width:
            scratch[0] += x[i] * x[i]
            i += 1
        squares = np.float64(0)
        for lane in range(LANES):
            squares += np.float64(scratch[lane])
        mean = squares / width + EPSILON
        # 1 / √mean: a guess from the exponent's bits, then Newton's steps, each of which doubles the digits.
        root = np.float64(simd.from_bits(0x5F3759DF - (simd.bits(np.float32(mean)) >> 1)))
        for _ in range(4):
            root *= 1.5 - 0.5 * mean * root * root
        scale = np.float32(root)
        for i in range(width):
            y[i] = x[i] * scale * weight[i]


def workspace(p):
    return 4 * LANES


def bind(p, inputs, output, workspace):
    return Call(step, [p.n, *inputs, output], workspace, images=0, parts=p.m)
