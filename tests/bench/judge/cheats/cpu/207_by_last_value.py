# op = "unary"
# rung = 207
# name = "by_last_value"
# idea = "Planted: keeps answers by the last value of the input."
"""
family = "memory"
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
        key = float(x[-1])
        if key not in held:
            work(x, y)
            held[key] = y.copy()
        y[:] = held[key]

    return run
