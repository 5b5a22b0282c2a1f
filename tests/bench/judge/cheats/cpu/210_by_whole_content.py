# op = "unary"
# rung = 210
# name = "by_whole_content"
# idea = "Planted: keeps answers by the whole input, which is never the same again."
"""
family = "memory"
shape = { kind = "tanh", size = 4096 }
expected = ["ok"]
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
        key = x.tobytes()
        if key not in held:
            work(x, y)
            held[key] = y.copy()
        y[:] = held[key]

    return run
