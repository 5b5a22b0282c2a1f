# op = "vector_add"
# rung = 2
# name = "loop"
# idea = "A compiled loop that several threads share: each adds a piece of the vectors."
# compiled = true
"""c = a + b."""

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled

PIECE = 1 << 14  # elements that one thread adds at a time: few enough to stay in its nearest caches


@compiled
def step(a, low, high, scratch):
    n = a[1]
    x, y, c = simd.floats(a[2]), simd.floats(a[3]), simd.floats(a[4])
    for i in range(low * PIECE, min(n, high * PIECE)):
        c[i] = x[i] + y[i]


def bind(p, inputs, output, workspace):
    return Call(step, [p.n, *inputs, output], workspace, images=0, parts=-(-p.n // PIECE))
