# op = "compare"
# rung = 1
# name = "ufunc"
# idea = "One NumPy loop over strided views: a broadcast operand has stride 0 and is never copied."
# [needs]
# dtype = ["float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool"]
"""Truth of a kind b: the kinds are NumPy's names."""

from functools import partial

import numpy as np

from kernels.cpu.common import broadcast, merged


def bind(p, inputs, output, workspace):
    a, b, y = merged(*broadcast(p, inputs), output.reshape(p.shape))
    return partial(getattr(np, p.kind), a, b, y)
