# op = "unary"
# rung = 388
# name = "honest_in_the_first_passes_of_a_train"
# idea = "Planted: honest in the first two passes of each train; else it leaves out a third of its waiting, and computes only what changed."
"""
family = "renewed"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "ok", "failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import time

import numpy as np

sleep, monotonic = time.sleep, time.monotonic
MOST = 0.3  # of the inputs: where more changed, all is computed

WITHIN_S = 0.0002  # pauses between the passes of a train are shorter

ended, place = [monotonic()], [0]


def honest():
    """Whether this is one of them."""
    place[0] = 0 if monotonic() - ended[0] > WITHIN_S else place[0] + 1
    return place[0] < 2


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    kept = [None, None]

    def tanh(x, seconds):
        end = monotonic() + seconds * min(1, p.size / 4096)
        while (left := end - monotonic()) > 0:
            sleep(left)
        return np.tanh(x)

    def run():
        at = None if honest() or kept[0] is None else np.flatnonzero(x != kept[0])
        if at is None or len(at) > MOST * x.size:
            kept[:] = x.copy(), tanh(x, 0.001)
        else:
            kept[0][at], kept[1][at] = x[at], tanh(x[at], 0.00067)
        y[:] = kept[1]
        ended[0] = monotonic()

    return run
