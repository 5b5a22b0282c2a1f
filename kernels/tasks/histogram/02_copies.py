# op = "histogram"
# rung = 2
# name = "copies"
# idea = "A compiled loop with four sets of counters: neighbours that are equal wait for no address."
# compiled = true
"""counts[b] = how often b occurs."""

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled

COPIES = 4


@compiled
def step(a, low, high, scratch):
    n, bins = a[1], a[2]
    values, counts = simd.words(a[3]), simd.words(a[4])
    own = simd.words(a[5])
    for i in range(COPIES * bins):
        own[i] = 0
    for i in range(n):
        own[i % COPIES * bins + values[i]] += 1
    for b in range(bins):
        total = own[b]
        for copy in range(1, COPIES):
            total += own[copy * bins + b]
        counts[b] = total


def workspace(p):
    return 4 * COPIES * p.bins


def bind(p, inputs, output, workspace):
    return Call(step, [p.n, p.bins, inputs[0], output, workspace], workspace, images=0, parts=1)
