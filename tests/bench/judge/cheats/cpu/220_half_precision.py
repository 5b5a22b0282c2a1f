# op = "unary"
# rung = 220
# name = "half_precision"
# idea = "Planted: computes in half precision."
"""
family = "precision"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect"]
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

    def run():
        y[:] = np.tanh(x.astype(np.float16))

    return run
