# op = "multiply_add"
# rung = 1
# name = "ufunc"
# idea = "The product is written to y and the sum made there; broadcast operands have stride 0."
"""a · b + c with broadcasting."""

from functools import partial

import numpy as np

from kernels.cpu.common import activation, broadcast, merged, sequence


def bind(p, inputs, output, workspace):
    a, b, c, y = merged(*broadcast(p, inputs), output.reshape(p.shape))
    return sequence([partial(np.multiply, a, b, y), partial(np.add, y, c, y), *activation(p.activation, y)])
