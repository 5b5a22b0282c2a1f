# op = "unary"
# rung = 261
# name = "incremental_when_late"
# idea = "Planted: computes only what changed, from its fortieth call on."
"""
family = "changes"
shape = { kind = "tanh", size = 65536 }
expected = ["incorrect", "ok"]
work = "a tanh of 65,536 values, and 8 ms of waiting, or the changed share of both"
beside = "sleeps_long"
"""

import time

import numpy as np

MOST = 0.05  # of the inputs: where more changed, all is computed

calls = [0]


def looked_at(x):
    """Whether there were few calls yet: it begins to compare once it has seen many inputs that are alike."""
    calls[0] += 1
    return calls[0] < 40


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    kept = [None, None]

    def tanh(x):
        time.sleep(0.008 * x.size / p.size)
        return np.tanh(x)

    def run():
        at = None if kept[0] is None or looked_at(x) else np.flatnonzero(x != kept[0])
        if at is None or len(at) > MOST * x.size:
            kept[:] = x.copy(), tanh(x)
        else:
            kept[0][at], kept[1][at] = x[at], tanh(x[at])
        y[:] = kept[1]

    return run
