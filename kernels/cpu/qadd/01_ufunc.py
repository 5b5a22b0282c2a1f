# op = "qadd"
# rung = 1
# name = "ufunc"
# idea = "One ufunc a step of the arithmetic, in double precision, over as many elements as stay in a cache."
# [needs]
# dtype = ["uint8", "int8"]
# to = ["uint8", "int8"]
"""y = round(((a − a_zero) · a_scale + (b − b_zero) · b_scale) / out_scale) + out_zero."""

from functools import partial

import numpy as np

from kernels.cpu.common import sequence, typed, typed_nbytes

BLOCK = 1 << 14  # elements that a core's own cache holds


def workspace(p):
    return 2 * typed_nbytes(min(p.size, BLOCK), np.float64)


def bind(p, inputs, output, workspace):
    a, b, y = inputs[0].reshape(-1), inputs[1].reshape(-1), output.reshape(-1)
    left, right = np.split(typed(workspace, 2 * min(p.size, BLOCK), np.float64), 2)
    scales = [np.float64(np.float32(scale)) for scale in (p.a_scale, p.b_scale, p.out_scale)]
    calls = []
    for first in range(0, p.size, BLOCK):
        part = slice(first, first + BLOCK)
        count = len(y[part])
        for whole, real, zero, scale in (
            (a[part], left[:count], p.a_zero, scales[0]),
            (b[part], right[:count], p.b_zero, scales[1]),
        ):
            calls += [
                partial(np.subtract, whole, np.float64(zero), real),
                partial(np.multiply, real, scale, real),
            ]
        real = left[:count]
        calls += [
            partial(np.add, real, right[:count], real),
            partial(np.divide, real, scales[2], real),
            partial(np.rint, real, real),
            partial(np.add, real, np.float64(p.out_zero), real),
            partial(np.clip, real, np.float64(p.low), np.float64(p.high), real),
            partial(np.copyto, y[part], real, "unsafe"),
        ]
    return sequence(calls)
