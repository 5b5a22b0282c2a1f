# op = "unary"
# rung = 1
# name = "ufunc"
# idea = "One NumPy loop over all elements, written straight to the output."
# [needs]
# dtype = ["float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool"]
"""relu, tanh, sigmoid and identity; identity takes every element type, the others floating point."""

from functools import partial

import numpy as np

from kernels.cpu.common import activation, sequence


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    if p.kind == "relu":
        return partial(np.maximum, x, x.dtype.type(0), out=y)
    if p.kind == "tanh":
        return partial(np.tanh, x, y)
    if p.kind == "sigmoid":
        return sequence([partial(np.copyto, y, x), *activation("sigmoid", y)])
    return partial(np.copyto, y, x)
