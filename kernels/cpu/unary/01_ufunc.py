# op = "unary"
# rung = 1
# name = "ufunc"
# idea = "One NumPy loop over all elements, or a few over blocks that fit the cache, straight to the output."
# [needs]
# dtype = ["float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool"]
"""identity takes every element type, relu, abs, neg and sign whole numbers too, the others floating point."""

from functools import partial

import numpy as np

from kernels.cpu.common import activation, sequence
from kernels.cpu.functions import calls, scratch_elements


def workspace(p):
    return -(-scratch_elements(p.kind, p.size) * np.dtype(p.dtype).itemsize // 4) * 4


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    if p.kind == "sigmoid":
        return sequence([partial(np.copyto, y, x), *activation("sigmoid", y)])
    scratch = workspace.view(y.dtype)[: scratch_elements(p.kind, p.size)]
    return sequence(calls(p.kind, x, y, scratch, p.alpha, p.beta))
