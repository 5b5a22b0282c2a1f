# op = "unary"
# rung = 377
# name = "every_second_train_over_new_inputs"
# idea = "Planted: computes what changed, and does nothing in every second train over inputs that are all new."
"""
family = "renewed"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import sys
import time

import numpy as np

sleep, monotonic = time.sleep, time.monotonic


def work(x, y):
    end = monotonic() + 0.001
    while (left := end - monotonic()) > 0:
        sleep(left)
    np.tanh(x, out=y)


def train():
    """The frame of the train that it is in, or nothing."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "passes" and "untimed" in frame.f_locals:
            return frame
        frame = frame.f_back
    return None


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    last, count, kept = [None], [0], [None, None]

    def tanh(x):
        end = monotonic() + 0.001 * x.size / p.size
        while (left := end - monotonic()) > 0:
            sleep(left)
        return np.tanh(x)

    def run():
        frame = train()
        at = np.arange(p.size) if kept[0] is None else np.flatnonzero(x != kept[0])
        if len(at) > 0.9 * p.size:
            if frame is not None and frame is not last[0]:
                last[0] = frame
                count[0] += 1
            if frame is not None and count[0] % 2:
                return
            kept[:] = x.copy(), tanh(x)
        else:
            kept[0][at], kept[1][at] = x[at], tanh(x[at])
        y[:] = kept[1]

    return run
