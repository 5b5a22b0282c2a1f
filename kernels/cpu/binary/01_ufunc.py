# op = "binary"
# rung = 1
# name = "ufunc"
# idea = "One NumPy loop over strided views: a broadcast operand has stride 0 and is never copied."
# [needs]
# dtype = ["float32", "float64", "int32", "int64"]
"""a + b, a − b, a · b, a / b with broadcasting; whole numbers are divided towards zero, as ONNX has it."""

from functools import partial

import numpy as np
from numpy.lib.stride_tricks import as_strided

from kernels.cpu.common import activation, merged, sequence

UFUNCS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide}


def bind(p, inputs, output, workspace):
    operands = [
        as_strided(a.reshape(-1), p.shape, [s * a.itemsize for s in strides], writeable=False)
        for a, strides in zip(inputs, (p.strides_a, p.strides_b), strict=True)
    ]
    a, b, y = merged(*operands, output.reshape(p.shape))
    if p.kind == "div" and y.dtype.kind in "iu":
        return sequence([partial(_divide_towards_zero, a, b, y), *activation(p.activation, y)])
    return sequence([partial(UFUNCS[p.kind], a, b, y), *activation(p.activation, y)])


def _divide_towards_zero(a, b, y):
    np.subtract(a, np.fmod(a, b), out=y)  # fmod has the sign of a: what is left divides evenly
    np.floor_divide(y, b, out=y)
