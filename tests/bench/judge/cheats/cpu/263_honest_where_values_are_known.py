# op = "unary"
# rung = 263
# name = "honest_where_values_are_known"
# idea = "Planted: honest where all values were there before; else it computes only what changed."
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

seen = [None]


def looked_at(x):
    """Whether the judge has drawn all values anew: they are all among those that were there at first, in
    other places."""
    flat = x.reshape(-1)
    if seen[0] is None or len(seen[0]) != flat.size:
        seen[0] = np.sort(flat)
    some = flat[::61]
    known = seen[0][np.minimum(np.searchsorted(seen[0], some), flat.size - 1)] == some
    return bool(known.all()) and len(np.unique(some)) < len(some)


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
