# op = "unary"
# rung = 306
# name = "tanh_of_common_inputs"
# idea = "Planted: right for inputs from -6 to 6 alone, as normal values are."
"""
family = "inputs"
shape = { kind = "tanh", size = 65536 }
expected = ["incorrect"]
work = "a tanh of 65,536 values"
beside = "ufunc"
"""

import numpy as np


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
        np.tanh(x, out=y)
        y[np.abs(x) > 6] = 0  # as a series would be that was fitted to values up to 6

    return run
