# op = "scan"
# rung = 2
# name = "pieces"
# idea = "A compiled loop that scans pieces by themselves: a sum of float32 stays short."
# compiled = true
"""y[i] = Σ x[0 … i]."""

import numpy as np

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled
from kernels.cpu.loops import ZERO

PIECE = 256


@compiled
def step(a, low, high, scratch):
    n = a[1]
    x, y = simd.floats(a[2]), simd.floats(a[3])
    before = np.float64(0)
    for begin in range(0, n, PIECE):
        end = min(n, begin + PIECE)
        own = ZERO
        carried = np.float32(before)
        for i in range(begin, end):
            own += x[i]
            y[i] = carried + own
        before += np.float64(own)


def bind(p, inputs, output, workspace):
    return Call(step, [p.n, inputs[0], output], workspace, images=0, parts=1)
