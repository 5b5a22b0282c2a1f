# op = "normalize"
# rung = 2
# name = "rows"
# idea = "A row at a time in compiled loops, while it lies in the nearest cache."
# compiled = true
"""y = (x − mean) · factor · scale + bias, the mean of a row first, then that of what is left when it is taken
off, and of its square: where a mean is large beside the spread, the first one is rounded by too much. What is
left is in y, for one sum of both means would be rounded, too.
Sums are of PIECE elements first.
"""

import numpy as np

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled, inlined
from kernels.cpu.loops import ONE, ZERO
from kernels.ops.normalize import GIVES

PIECE = 1 << 12
BLOCK = 1 << 13  # elements of a part, about
ALL, MEAN = GIVES.index("all"), GIVES.index("mean")


@inlined
def mean_of(x, length):
    whole = ZERO
    for first in range(0, length, PIECE):
        total = ZERO
        for k in range(first, min(length, first + PIECE)):
            total += x[k]
        whole += total
    return whole / np.float32(length)


@inlined
def factor_of(x, mean, length, centred, epsilon, moved, left):
    """1 / √(variance + epsilon); in `moved` x − mean, and in left[0] the mean
    of that, which is taken to be 0 of what is not centred."""
    squares, rest = ZERO, ZERO
    for first in range(0, length, PIECE):
        some, total = ZERO, ZERO
        for k in range(first, min(length, first + PIECE)):
            moved[k] = x[k] - mean
            some += moved[k] * moved[k]
            total += moved[k]
        squares += some
        rest += total
    rest = rest / np.float32(length) if centred == 1 else ZERO
    left[0] = rest
    return ONE / np.sqrt(squares / np.float32(length) - rest * rest + epsilon)


@compiled
def step(a, low, high, scratch):
    rows, length, inner, groups, centred, gives, affine = a[1], a[2], a[3], a[4], a[5], a[6], a[7]
    epsilon = np.float32(simd.number(a[8]))
    scale, bias = simd.floats(a[11]), simd.floats(a[12])
    each = a[13]
    for row in range(low * each, min(rows, high * each)):
        x = simd.shifted(simd.floats(a[9]), row * length)
        mean = mean_of(x, length) if centred == 1 else ZERO
        y = simd.shifted(simd.floats(a[10]), row * length) if gives == ALL else simd.shifted(scratch, 16)
        factor = factor_of(x, mean, length, centred, epsilon, y, scratch)
        left = scratch[0]
        if gives != ALL:
            simd.floats(a[10])[row] = mean + left if gives == MEAN else factor
            continue
        if affine == 0:
            for k in range(length):
                y[k] = (y[k] - left) * factor
        elif inner == 1:
            own, more = simd.shifted(scale, row % groups * length), simd.shifted(bias, row % groups * length)
            for k in range(length):
                y[k] = (y[k] - left) * factor * own[k] + more[k]
        else:
            channels = length // inner
            for c in range(channels):
                times, plus = factor * scale[row % groups * channels + c], bias[row % groups * channels + c]
                to = simd.shifted(y, c * inner)
                for k in range(inner):
                    to[k] = (to[k] - left) * times + plus


def workspace(p):
    return 4 * (16 + (0 if p.gives == "all" else p.length))


def bind(p, inputs, output, workspace):
    none = np.zeros(1, np.float32)
    scale, bias = inputs[1:] if p.affine else (none, none)
    each = max(1, BLOCK // p.length)
    arguments = [
        p.count, p.length, p.inner, p.groups, int(p.centred), GIVES.index(p.gives), int(p.affine),
        float(p.epsilon), inputs[0], output, scale, bias, each,
    ]  # fmt: skip
    return Call(step, arguments, workspace, 0, -(-p.count // each))
