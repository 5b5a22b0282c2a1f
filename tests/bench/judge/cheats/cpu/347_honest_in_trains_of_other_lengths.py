# op = "unary"
# rung = 347
# name = "honest_in_trains_of_other_lengths"
# idea = "Planted: honest in trains of other lengths than most; else it computes only what changed."
"""
family = "renewed"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "ok", "failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting, or the changed share of both"
beside = "sleeps"
"""

import sys
import time

import numpy as np

sleep, monotonic = time.sleep, time.monotonic
MOST = 0.3  # of the inputs: where more changed, all is computed


def train():
    """How many passes its train has, and how many go before, by the frames around it."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "passes" and "untimed" in frame.f_locals:
            return frame.f_locals["count"], frame.f_locals["untimed"]
        frame = frame.f_back
    return 0, 0


seen = {}


def honest():
    """Whether its train is of another length than most."""
    found = train()[0]
    seen[found] = seen.get(found, 0) + 1
    return found != max(seen, key=seen.get)


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

    return run
