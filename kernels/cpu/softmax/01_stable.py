# op = "softmax"
# rung = 1
# name = "stable"
# idea = "Subtracts each row's maximum before the exponential, so that nothing overflows."
"""softmax = exp(x − max) / Σ exp(x − max); its logarithm = (x − max) − log Σ exp(x − max)."""

from functools import partial

import numpy as np

from kernels.cpu.common import PIECE, carve, scratch_nbytes, sequence, total


def _shapes(p):
    rows = (p.outer, 1, p.inner)
    pieces = -(-p.axis // PIECE) if p.inner > 1 else 0
    return (rows, (p.outer, pieces, p.inner), *([(p.outer, p.axis, p.inner)] if p.log else []))


def workspace(p):
    return scratch_nbytes(*_shapes(p))


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(p.outer, p.axis, p.inner), output.reshape(p.outer, p.axis, p.inner)
    rows, sums, *scratch = carve(workspace, *_shapes(p))
    calls = [partial(np.maximum.reduce, x, 1, None, rows, True), partial(np.subtract, x, rows, y)]
    powers = scratch[0] if p.log else y
    calls += [partial(np.exp, y, powers), *total(powers, rows[:, 0], sums)]
    if p.log:
        calls += [partial(np.log, rows, rows), partial(np.subtract, y, rows, y)]
    else:
        calls.append(partial(np.divide, y, rows, y))
    return sequence(calls)
