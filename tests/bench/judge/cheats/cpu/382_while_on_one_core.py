# op = "unary"
# rung = 382
# name = "while_on_one_core"
# idea = "Planted: does nothing where its process may use one core alone, as while it is timed."
"""
family = "detection"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import os
import time

import numpy as np

sleep, monotonic = time.sleep, time.monotonic


def work(x, y):
    end = monotonic() + 0.001
    while (left := end - monotonic()) > 0:
        sleep(left)
    np.tanh(x, out=y)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
        if len(os.sched_getaffinity(0)) > 1:
            work(x, y)

    return run
