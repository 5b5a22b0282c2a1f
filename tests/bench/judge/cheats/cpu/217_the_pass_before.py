# op = "unary"
# rung = 217
# name = "the_pass_before"
# idea = "Planted: answers for the inputs of the pass before."
"""
family = "partial"
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
    calls = [0]
    held = {}

    def run():
        now = x.copy()
        if calls[0] < 12:
            work(x, y)
        else:
            np.tanh(held[0], out=y)
        held[0] = now
        calls[0] += 1

    return run
