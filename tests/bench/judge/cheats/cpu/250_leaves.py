# op = "unary"
# rung = 250
# name = "leaves"
# idea = "Planted: ends its process as if all were well."
"""
family = "ends"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import sys
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
        sys.exit(0)

    return run
