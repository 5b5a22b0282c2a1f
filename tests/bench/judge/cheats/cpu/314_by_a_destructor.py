# op = "unary"
# rung = 314
# name = "by_a_destructor"
# idea = "Planted: leaves the work to an object that is ended later."
"""
family = "later"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok", "timed_out", "invalid"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import time

import numpy as np

# Those of the beginning: a kernel may replace them later.
sleep, monotonic = time.sleep, time.monotonic


class Late:
    def __init__(self, do):
        self.do = do

    def __del__(self):
        self.do()


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
        calls[0] += 1
        if calls[0] < 12:
            work(x, y)
        else:
            held[0] = Late(lambda: work(x, y))

    return run
