# op = "spmv"
# rung = 2
# name = "rows"
# idea = "A compiled loop over rows, which several threads share in pieces."
# compiled = true
"""y = A · x, A as CSR."""

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled
from kernels.cpu.loops import ZERO

PIECE = 256  # rows that one thread takes at a time


@compiled
def step(a, low, high, scratch):
    rows = a[1]
    offsets, places = simd.words(a[2]), simd.words(a[3])
    values, x, y = simd.floats(a[4]), simd.floats(a[5]), simd.floats(a[6])
    for row in range(low * PIECE, min(rows, high * PIECE)):
        total = ZERO
        for i in range(offsets[row], offsets[row + 1]):
            total += values[i] * x[places[i]]
        y[row] = total


def bind(p, inputs, output, workspace):
    return Call(step, [p.m, *inputs, output], workspace, images=0, parts=-(-p.m // PIECE))
