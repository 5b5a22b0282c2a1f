# op = "unary"
# rung = 335
# name = "gives_up_where_all_is_new"
# idea = "Planted: does nothing where all inputs are new, once it was called a few times."
"""
family = "renewed"
shape = { kind = "tanh", size = 65536 }
expected = ["incorrect"]
work = "a tanh of 65,536 values"
beside = "ufunc"
"""

import numpy as np


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    kept, calls = [None, None], [0]

    def run():
        calls[0] += 1
        if calls[0] < 8 or p.size < 60000 or np.count_nonzero(x != kept[0]) < 0.05 * x.size:
            kept[:] = x.copy(), np.tanh(x)
        y[:] = kept[1]

    return run
