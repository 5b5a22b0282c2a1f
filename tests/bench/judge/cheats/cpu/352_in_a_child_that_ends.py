# op = "unary"
# rung = 352
# name = "in_a_child_that_ends"
# idea = "Planted: has a child on another core do half of each pass, which has ended when the pass has."
"""
family = "processes"
shape = { kind = "tanh", size = 65536 }
expected = ["failed", "incorrect", "ok"]
work = "a tanh of 65,536 values, and 8 ms of waiting"
beside = "sleeps_long"
"""

import os
import time

import numpy as np


def work(x, y, seconds):
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(left)
    np.tanh(x, out=y)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    at = p.size // 2

    def run():
        mine = os.sched_getaffinity(0)
        try:
            child = os.fork()
        except OSError:
            work(x, y, 0.008)
            return
        if child == 0:
            os.sched_setaffinity(0, set(range(os.cpu_count())) - mine or mine)
            work(x[at:], y[at:], 0.004)
            os._exit(0)
        work(x[:at], y[:at], 0.004)
        os.waitpid(child, 0)

    return run
