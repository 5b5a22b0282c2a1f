# op = "unary"
# rung = 303
# name = "tanh_of_15_bits"
# idea = "Planted: rounds a tanh to 15 bits."
"""
family = "precision"
shape = { kind = "tanh", size = 65536 }
expected = ["incorrect"]
work = "a tanh of 65,536 values in float32"
beside = "ufunc"
"""

import numpy as np


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    low = np.uint32(1 << 9)

    def run():
        np.tanh(x, out=y)
        bits = y.view(np.uint32)
        bits += low >> np.uint32(1)
        bits &= ~(low - np.uint32(1))

    return run
