# op = "unary"
# rung = 361
# name = "says_that_it_splits"
# idea = "Planted: rounds a tanh to 16 bits, and says that it splits its factors."
# method = "split"
"""
family = "precision"
shape = { kind = "tanh", size = 65536 }
expected = ["incorrect", "failed"]
work = "a tanh of 65,536 values"
beside = "honest_tanh"
"""

import numpy as np


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    bits = y.view(np.uint32)

    def run():
        np.tanh(x, out=y)
        bits[:] = (bits + 0x80) & 0xFFFFFF00

    return run
