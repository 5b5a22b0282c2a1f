# op = "unary"
# rung = 200
# name = "sleeps"
# idea = "Honest: what the others are held against."
"""
family = "honest"
shape = { kind = "tanh", size = 4096 }
expected = ["ok"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import time

import numpy as np


def work(x, y):
    end = time.monotonic() + 0.001
    while (left := end - time.monotonic()) > 0:
        time.sleep(left)
    np.tanh(x, out=y)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
        work(x, y)

    return run
