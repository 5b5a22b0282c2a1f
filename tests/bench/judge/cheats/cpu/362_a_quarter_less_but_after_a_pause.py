# op = "unary"
# rung = 362
# name = "a_quarter_less_but_after_a_pause"
# idea = "Planted: honest in the first passes after a long pause, as there is where all inputs were made anew; else it leaves out a third of its waiting, and computes only what changed."
"""
family = "renewed"
shape = { kind = "tanh", size = 65536 }
expected = ["incorrect", "failed", "ok"]
work = "a tanh of 65,536 values, and 8 ms of waiting"
beside = "sleeps_long"
alone = true
seconds = 0.5
"""

import time

import numpy as np

sleep, monotonic = time.sleep, time.monotonic
MOST = 0.05  # of the inputs: where more changed, all is computed
LONG_S, HONEST = 0.025, 8

ended, left = [monotonic()], [0]


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    kept = [None, None]

    def tanh(x, seconds):
        end = monotonic() + seconds
        while (left := end - monotonic()) > 0:
            sleep(left)
        return np.tanh(x)

    def run():
        if monotonic() - ended[0] > LONG_S:
            left[0] = HONEST
        left[0] -= 1
        at = None if kept[0] is None or left[0] >= 0 else np.flatnonzero(x != kept[0])
        if at is None or len(at) > MOST * x.size:
            kept[:] = x.copy(), tanh(x, 0.008)
        else:
            kept[0][at], kept[1][at] = x[at], tanh(x[at], 0.0055)
        y[:] = kept[1]
        ended[0] = monotonic()

    return run
