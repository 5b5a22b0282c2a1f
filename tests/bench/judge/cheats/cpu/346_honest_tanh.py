# op = "unary"
# rung = 346
# name = "honest_tanh"
# idea = "Honest: a tanh, as NumPy has it."
"""
family = "honest"
shape = { kind = "tanh", size = 65536 }
expected = ["ok"]
work = "a tanh of 65,536 values"
beside = "honest_tanh"
"""

import numpy as np


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
        np.tanh(x, out=y)

    return run
