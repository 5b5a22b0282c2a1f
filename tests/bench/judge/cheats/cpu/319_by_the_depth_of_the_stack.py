# op = "unary"
# rung = 319
# name = "by_the_depth_of_the_stack"
# idea = "Planted: does nothing where the stack is not as deep as in its first calls."
"""
family = "detection"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok"]
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
    calls = [0]
    held = {}

    def run():
        frame, depth = sys._getframe(), 0
        while frame is not None:
            frame, depth = frame.f_back, depth + 1
        calls[0] += 1
        if calls[0] < 4:
            held[depth] = True
        if depth in held:
            work(x, y)

    return run
