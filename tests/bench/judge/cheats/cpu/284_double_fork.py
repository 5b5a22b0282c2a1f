# op = "unary"
# rung = 284
# name = "double_fork"
# idea = "Planted: a process that was forked twice, and has no parent of ours, does the work."
"""
family = "processes"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok", "timed_out", "invalid"]
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
    calls = [0]

    def run():
        calls[0] += 1
        if calls[0] < 12:
            work(x, y)
        elif (child := os.fork()) == 0:
            os.setsid()
            if os.fork() == 0:
                work(x, y)
            os._exit(0)
        else:
            os.waitpid(child, 0)

    return run
