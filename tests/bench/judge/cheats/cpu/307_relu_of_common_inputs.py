# op = "unary"
# rung = 307
# name = "relu_of_common_inputs"
# idea = "Planted: right for inputs below 6 alone, as normal values are."
"""
family = "inputs"
shape = { kind = "relu", size = 65536 }
expected = ["incorrect"]
work = "a relu of 65,536 values"
beside = "ufunc"
"""

import numpy as np


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
        np.clip(x, 0, 6, out=y)

    return run
