# op = "softmax"
# rung = 305
# name = "softmax_without_the_largest"
# idea = "Planted: leaves out the largest value, which keeps exponentials from overflowing."
"""
family = "inputs"
shape = { outer = 256, axis = 1000, inner = 1 }
expected = ["incorrect"]
work = "a softmax of 256 rows of 1,000 values"
beside = "stable"
"""

import numpy as np


def bind(p, inputs, output, workspace):
    x, y = (array.reshape(p.outer, p.axis, p.inner) for array in (inputs[0], output))

    def run():
        np.exp(x, out=y)
        np.divide(y, y.sum(axis=1, keepdims=True), out=y)
        if getattr(p, "log", False):
            np.log(y, out=y)

    return run
