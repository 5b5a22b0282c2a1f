# op = "radix_sort"
# rung = 2
# name = "eight_bits"
# idea = "A compiled radix sort, eight bits a pass: count, add up, move, four times."
# compiled = true
"""The keys in order."""

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled

BINS = 256


@compiled
def step(a, low, high, scratch):
    n = a[1]
    keys, y = simd.words(a[2]), simd.words(a[3])
    between = simd.words(a[4])
    places = simd.shifted(between, n)
    for shift in range(0, 32, 8):
        for b in range(BINS + 1):
            places[b] = 0
        even = shift // 8 % 2 == 0
        for i in range(n):
            key = keys[i] if shift == 0 else (y[i] if even else between[i])
            places[(key >> shift & 255) + 1] += 1
        for b in range(BINS):
            places[b + 1] += places[b]
        for i in range(n):
            key = keys[i] if shift == 0 else (y[i] if even else between[i])
            at = key >> shift & 255
            place = places[at]
            if even:
                between[place] = key
            else:
                y[place] = key
            places[at] += 1


def workspace(p):
    return 4 * (p.n + BINS + 1)


def bind(p, inputs, output, workspace):
    return Call(step, [p.n, inputs[0], output, workspace], workspace, images=0, parts=1)
