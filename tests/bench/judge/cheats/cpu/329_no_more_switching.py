# op = "unary"
# rung = 329
# name = "no_more_switching"
# idea = "Planted: lets no other thread of its process run."
"""
family = "machinery"
shape = { kind = "tanh", size = 4096 }
expected = ["ok", "incorrect", "crashed", "failed"]
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
        sys.setswitchinterval(1e6)
        work(x, y)

    return run
