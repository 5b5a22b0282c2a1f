# op = "unary"
# rung = 340
# name = "honest_for_a_while"
# idea = "Planted: honest in the next 200 calls after many of its inputs changed; else it computes only what changed."
"""
family = "renewed"
shape = { kind = "tanh", size = 65536 }
expected = ["incorrect", "ok"]
work = "a tanh of 65,536 values, and 8 ms of waiting, or the changed share of both"
beside = "sleeps_long"
"""

import time

import numpy as np

MOST = 0.05  # of the inputs: where more changed, all is computed

honest, last = [0], [None]


def looked_at(x):
    """Whether it has seen inputs that are all new not long ago."""
    if last[0] is None or last[0].size != x.size or np.count_nonzero(x != last[0]) > MOST * x.size:
        honest[0] = 0 if last[0] is None else 200
    last[0] = x.copy()
    honest[0] -= 1
    return honest[0] > 0


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
