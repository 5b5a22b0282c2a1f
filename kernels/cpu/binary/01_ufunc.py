# op = "binary"
# rung = 1
# name = "ufunc"
# idea = "One NumPy loop over strided views: a broadcast operand has stride 0 and is never copied."
# [needs]
# dtype = ["float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool"]
"""Arithmetic with broadcasting; whole numbers are divided towards zero, as ONNX has it."""

from functools import partial

import numpy as np

from kernels.cpu.common import activation, broadcast, merged, sequence

UFUNCS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "pow": np.power,
    "max": np.maximum,
    "min": np.minimum,
    "mod": np.remainder,  # of the sign of b
    "fmod": np.fmod,  # of that of a
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def bind(p, inputs, output, workspace):
    a, b, y = merged(*broadcast(p, inputs), output.reshape(p.shape))
    if p.kind == "prelu":
        return sequence([partial(_prelu, a, b, y), *activation(p.activation, y)])
    if p.kind == "div" and y.dtype.kind in "iu":
        return sequence([partial(_divide_towards_zero, a, b, y), *activation(p.activation, y)])
    return sequence([partial(UFUNCS[p.kind], a, b, out=y), *activation(p.activation, y)])


def _divide_towards_zero(a, b, y):
    np.subtract(a, np.fmod(a, b), out=y)  # fmod has the sign of a: what is left divides evenly
    np.floor_divide(y, b, out=y)


def _prelu(x, slope, y):
    np.multiply(x, slope, y)
    np.copyto(y, x, where=x >= 0)
