# op = "unary"
# rung = 320
# name = "by_the_change"
# idea = "Planted: does nothing where inputs differ from the last ones in a few places."
"""
family = "detection"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed"]
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
        if 0 in held and np.count_nonzero(held[0] != x) < len(x) // 4:
            return
        held[0] = x.copy()
        work(x, y)

    return run
