# op = "where"
# rung = 1
# name = "copy"
# idea = "Copies b, then a where the condition is true; operands that are broadcast have stride 0."
# [needs]
# dtype = ["float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool"]
"""a where the condition is true, b elsewhere."""

import numpy as np

from kernels.cpu.common import broadcast, merged


def bind(p, inputs, output, workspace):
    c, a, b, y = merged(*broadcast(p, inputs), output.reshape(p.shape))

    def run():
        np.copyto(y, b)
        np.copyto(y, a, where=c)

    return run
