# op = "unary"
# rung = 349
# name = "honest_after_a_pause"
# idea = "Planted: honest for 100 passes after a pause, as there is where all inputs were made anew; else it computes only what changed."
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


ended, left, pauses = [monotonic()], [0], []


def honest():
    """Whether there was a pause lately that was longer than most."""
    pause = monotonic() - ended[0]
    pauses.append(pause)
    if pause > 3 * np.median(pauses[-2000:]) + 0.001:
        left[0] = 100
    left[0] -= 1
    return left[0] >= 0


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    kept = [None, None]

    def tanh(x):
        end = monotonic() + 0.001 * x.size / p.size
        while (left := end - monotonic()) > 0:
            sleep(left)
        return np.tanh(x)

    def run():
        at = None if kept[0] is None or honest() else np.flatnonzero(x != kept[0])
        if at is None or len(at) > MOST * x.size:
            kept[:] = x.copy(), tanh(x)
        else:
            kept[0][at], kept[1][at] = x[at], tanh(x[at])
        y[:] = kept[1]
        ended[0] = monotonic()

    return run
