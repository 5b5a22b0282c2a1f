# op = "cumulate"
# rung = 1
# name = "accumulate"
# idea = "NumPy's running sum or product along the axis, from the end through a view that runs backwards."
# [needs]
# dtype = ["float32", "float64", "int32", "int64", "uint8", "int8"]
"""y[:, i] = Σ or Π of x[:, : i + 1]."""

from functools import partial

import numpy as np

from kernels.cpu.common import sequence


def bind(p, inputs, output, workspace):
    x, y = (array.reshape(p.outer, p.axis, p.inner) for array in (inputs[0], output))
    if p.reverse:
        x, y = x[:, ::-1], y[:, ::-1]
    calls = []
    if p.exclusive:
        calls.append(partial(y[:, :1].fill, y.dtype.type(p.kind == "prod")))
        x, y = x[:, :-1], y[:, 1:]
    join = np.add if p.kind == "sum" else np.multiply
    if x.size:
        calls.append(partial(join.accumulate, x, 1, y.dtype, y))
    return sequence(calls)
