# op = "reduction"
# rung = 2
# name = "lanes"
# idea = "A compiled loop with sixteen sums side by side, which a processor adds at once."
# compiled = true
"""sum = Σ x."""

import numpy as np

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled
from kernels.cpu.loops import ZERO

LANES, PIECE = 16, 4096  # sums side by side; elements that are added by themselves


@compiled
def step(a, low, high, scratch):
    n = a[1]
    x, total = simd.floats(a[2]), simd.floats(a[3])
    whole = np.float64(0)
    for begin in range(0, n, PIECE):
        end = min(n, begin + PIECE)
        for lane in range(LANES):
            scratch[lane] = ZERO
        i = begin
        while i + LANES <= end:
            for lane in range(LANES):
                scratch[lane] += x[i + lane]
            i += LANES
        while i < end:
            scratch[0] += x[i]
            i += 1
        for lane in range(LANES):
            whole += np.float64(scratch[lane])
    total[0] = np.float32(whole)


def workspace(p):
    return 4 * LANES


def bind(p, inputs, output, workspace):
    return Call(step, [p.n, inputs[0], output], workspace, images=0, parts=1)
