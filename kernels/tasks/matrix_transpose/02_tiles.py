# op = "matrix_transpose"
# rung = 2
# name = "tiles"
# idea = "A compiled loop over tiles that stay in the nearest cache while their columns are written."
# compiled = true
"""y = xᵀ."""

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled

TILE = 32


@compiled
def step(a, low, high, scratch):
    m, n = a[1], a[2]
    x, y = simd.floats(a[3]), simd.floats(a[4])
    for tile in range(low, high):
        end = min(m, (tile + 1) * TILE)
        for first in range(0, n, TILE):
            for column in range(first, min(n, first + TILE)):
                for row in range(tile * TILE, end):
                    y[column * m + row] = x[row * n + column]


def bind(p, inputs, output, workspace):
    return Call(step, [p.m, p.n, inputs[0], output], workspace, images=0, parts=-(-p.m // TILE))
