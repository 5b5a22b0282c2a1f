# op = "softmax"
# rung = 1
# name = "stable"
# idea = "Subtracts each row's maximum before the exponential, so that nothing overflows."
"""softmax = exp(x − max) / Σ exp(x − max); its logarithm = (x − max) − log Σ exp(x − max)."""

from functools import partial

import numpy as np

from kernels.cpu.common import carve, scratch_nbytes, sequence


def _shapes(p):
    rows = (p.outer, 1, p.inner)
    return (rows, (p.outer, p.axis, p.inner)) if p.log else (rows,)


def workspace(p):
    return scratch_nbytes(*_shapes(p))


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(p.outer, p.axis, p.inner), output.reshape(p.outer, p.axis, p.inner)
    rows, *scratch = carve(workspace, *_shapes(p))
    calls = [partial(np.maximum.reduce, x, 1, None, rows, True), partial(np.subtract, x, rows, y)]
    powers = scratch[0] if p.log else y
    calls += [partial(np.exp, y, powers), partial(np.add.reduce, powers, 1, None, rows, True)]
    if p.log:
        calls += [partial(np.log, rows, rows), partial(np.subtract, y, rows, y)]
    else:
        calls.append(partial(np.divide, y, rows, y))
    return sequence(calls)
