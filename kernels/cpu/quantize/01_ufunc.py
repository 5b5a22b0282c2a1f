# op = "quantize"
# rung = 1
# name = "ufunc"
# idea = "One ufunc a step of the arithmetic, over as many elements as stay in a cache in between."
# [needs]
# dtype = ["float32", "uint8", "int8", "int32"]
# to = ["float32", "uint8", "int8"]
"""Through whole numbers: q = round(x / scale) + zero, y = (q − zero) · scale."""

from functools import partial

import numpy as np

from kernels.cpu.common import carve, scratch_nbytes, sequence

BLOCK = 1 << 16  # elements that a core's own cache holds


def workspace(p):
    """What is to become whole numbers, before it does."""
    return scratch_nbytes(p.output_shape) if p.to != "float32" else 0


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(p.output_shape), output.reshape(p.output_shape)
    scale, zero = (array.reshape(1, p.channels, 1) for array in inputs[1:])
    values = y if p.to == "float32" else carve(workspace, p.output_shape)[0]
    if p.channels == 1:  # any elements together
        x, y, values = x.reshape(-1), y.reshape(-1), values.reshape(-1)
        scale, zero, each = scale.reshape(1), zero.reshape(1), BLOCK
    else:
        each = max(1, BLOCK // (p.channels * p.inner))
    calls = []
    for first in range(0, len(x), each):
        part = slice(first, first + each)
        calls += _part(p, x[part], scale, zero, values[part], y[part])
    return sequence(calls)


def _part(p, x, scale, zero, values, y):
    """values: float32, y itself where that is."""
    calls = [partial(np.copyto, values, x, "unsafe")]
    if p.dtype == "float32":
        low, high = map(np.float32, p.limits)
        calls = [
            partial(np.divide, x, scale, values),
            partial(np.rint, values, values),
            partial(np.add, values, zero, values),
            partial(np.clip, values, low, high, values),
        ]
    if p.to != "float32":
        return [*calls, partial(np.copyto, y, values, "unsafe")]
    return [*calls, partial(np.subtract, values, zero, values), partial(np.multiply, values, scale, values)]
