# op = "unary"
# rung = 334
# name = "branches"
# idea = "Honest: faster over inputs that a processor has met often, since it foretells which are negative."
"""
family = "honest"
shape = { kind = "relu", size = 16384 }
expected = ["ok"]
work = "a relu of 16,384 values"
beside = "branches"
"""

import numpy as np


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
        np.copyto(y, x)
        y[y < 0] = 0

    return run
