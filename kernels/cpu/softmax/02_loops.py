# op = "softmax"
# rung = 2
# name = "loops"
# idea = "Maximum, exponentials and sum in one compiled function, the exponential a polynomial."
# compiled = true
"""softmax = exp(x − max) / Σ exp(x − max); its logarithm = (x − max) − log Σ exp(x − max)."""

import math

import numpy as np

from kernels.cpu import simd
from kernels.cpu.common import PIECE
from kernels.cpu.compiled import Call, compiled
from kernels.cpu.loops import ZERO, exp


@compiled
def step(a, low, high, scratch):
    """scratch: of each of the `inner` columns the maximum, the sum of a piece, and that of all before it."""
    axis, inner, log = a[1], a[2], a[3]
    most, total, before = scratch, simd.shifted(scratch, inner), simd.shifted(scratch, 2 * inner)
    for row in range(low, high):
        x = simd.shifted(simd.floats(a[4]), row * axis * inner)
        y = simd.shifted(simd.floats(a[5]), row * axis * inner)
        for k in range(inner):
            most[k], total[k], before[k] = x[k], ZERO, ZERO
        for i in range(1, axis):
            of = simd.shifted(x, i * inner)
            for k in range(inner):
                most[k] = of[k] if (of[k] > most[k]) | (of[k] != of[k]) else most[k]
        if inner == 1:
            largest, added = most[0], ZERO
            for i in range(axis):
                y[i] = exp(x[i] - largest)
                added += y[i]
            if log:
                lowered = np.float32(math.log(np.float64(added)))
                for i in range(axis):
                    y[i] = x[i] - largest - lowered
            else:
                for i in range(axis):
                    y[i] = y[i] / added
        else:
            for i in range(axis):
                of, to = simd.shifted(x, i * inner), simd.shifted(y, i * inner)
                for k in range(inner):
                    to[k] = exp(of[k] - most[k])
                    total[k] += to[k]
                if i % PIECE == PIECE - 1:
                    for k in range(inner):
                        before[k] += total[k]
                        total[k] = ZERO
            for k in range(inner):
                total[k] += before[k]
            for i in range(axis):
                of, to = simd.shifted(x, i * inner), simd.shifted(y, i * inner)
                if log:
                    for k in range(inner):
                        to[k] = np.float32(of[k] - most[k] - math.log(np.float64(total[k])))
                else:
                    for k in range(inner):
                        to[k] = to[k] / total[k]


def workspace(p):
    return 12 * p.inner


def bind(p, inputs, output, workspace):
    arguments = [p.axis, p.inner, int(p.log), inputs[0], output]
    return Call(step, arguments, workspace, images=p.outer, parts=p.outer)
