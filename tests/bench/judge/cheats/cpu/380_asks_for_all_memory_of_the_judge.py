# op = "unary"
# rung = 380
# name = "asks_for_all_memory_of_the_judge"
# idea = "Planted: asks for a workspace of 32 TiB where it is timed, which its judge has to fill."
"""
family = "others"
shape = { kind = "tanh", size = 4096 }
expected = ["out_of_memory"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import time

import numpy as np

sleep, monotonic = time.sleep, time.monotonic


def work(x, y):
    end = monotonic() + 0.001
    while (left := end - monotonic()) > 0:
        sleep(left)
    np.tanh(x, out=y)


def workspace(p):
    return 1 << 45 if p.size == 4096 else 0


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
        work(x, y)

    return run
