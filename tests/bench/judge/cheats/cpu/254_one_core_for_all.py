# op = "unary"
# rung = 254
# name = "one_core_for_all"
# idea = "Planted: binds its process to one core."
"""
family = "others"
shape = { kind = "tanh", size = 4096 }
expected = ["ok"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import os
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
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        os.nice(0)
        work(x, y)

    return run
