# op = "quantize"
# rung = 1
# name = "ufunc"
# idea = "One ufunc a step of the arithmetic: divide, round, shift, hold within limits; shift back, multiply."
# [needs]
# dtype = ["float32", "uint8", "int8", "int32"]
# to = ["float32", "uint8", "int8"]
"""Through whole numbers: q = round(x / scale) + zero, y = (q − zero) · scale."""

from functools import partial

import numpy as np

from kernels.cpu.common import carve, scratch_nbytes, sequence


def workspace(p):
    """What is to become whole numbers, before it does."""
    return scratch_nbytes(p.output_shape) if p.to != "float32" else 0


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(p.output_shape), output.reshape(p.output_shape)
    scale, zero = (array.reshape(1, p.channels, 1) for array in inputs[1:])
    if p.channels == 1:  # one axis, which NumPy walks faster
        x, y, scale, zero = x.reshape(-1), y.reshape(-1), scale.reshape(1), zero.reshape(1)
    values = y if p.to == "float32" else carve(workspace, p.output_shape)[0].reshape(y.shape)
    calls = []
    if p.dtype == "float32":
        low, high = map(np.float32, p.limits)
        calls += [
            partial(np.divide, x, scale, values),
            partial(np.rint, values, values),
            partial(np.add, values, zero, values),
            partial(np.maximum, values, low, out=values),
            partial(np.minimum, values, high, out=values),
        ]
        if p.to != "float32":
            return sequence([*calls, partial(np.copyto, y, values, "unsafe")])
    else:
        calls.append(partial(np.copyto, values, x, "unsafe"))
    return sequence([
        *calls,
        partial(np.subtract, values, zero, values),
        partial(np.multiply, values, scale, values),
    ])  # fmt: skip
