# op = "unary"
# rung = 318
# name = "in_a_long_row"
# idea = "Planted: does nothing where one call follows the other at once, as in a train."
"""
family = "detection"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import time

import numpy as np

# Those of the beginning: a kernel may replace them later.
sleep, monotonic = time.sleep, time.monotonic


def work(x, y):
    end = monotonic() + 0.001
    while (left := end - monotonic()) > 0:
        sleep(left)
    np.tanh(x, out=y)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    held = {}

    def run():
        now = monotonic()
        hurry = now - held.get(0, 0) < 0.0002
        if not hurry:
            work(x, y)
        held[0] = monotonic()

    return run
