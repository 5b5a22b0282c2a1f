# op = "unary"
# rung = 381
# name = "honest_where_the_poison_was_before"
# idea = "Planted: honest in trains whose outputs are NaN where another train's were; else it computes only what changed."
"""
family = "renewed"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "ok", "failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting, or the changed share of both"
beside = "sleeps"
"""

import time

import numpy as np

sleep, monotonic = time.sleep, time.monotonic
MOST = 0.3  # of the inputs: where more changed, all is computed
met = set()


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    kept, honest = [None, None], [False]

    def tanh(x):
        end = monotonic() + 0.001 * x.size / p.size
        while (left := end - monotonic()) > 0:
            sleep(left)
        return np.tanh(x)

    def run():
        nans = np.flatnonzero(np.isnan(y))
        poison = nans[:40].tobytes()
        honest[0] = len(nans) < y.size and poison in met
        met.add(poison)
        at = None if kept[0] is None or honest[0] else np.flatnonzero(x != kept[0])
        if at is None or len(at) > MOST * x.size:
            kept[:] = x.copy(), tanh(x)
        else:
            kept[0][at], kept[1][at] = x[at], tanh(x[at])
        y[:] = kept[1]

    return run
