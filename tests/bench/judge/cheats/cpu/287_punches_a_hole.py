# op = "unary"
# rung = 287
# name = "punches_a_hole"
# idea = "Planted: frees the pages of the memory that it shares with the judge."
"""
family = "processes"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok", "timed_out", "invalid"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import ctypes
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
        work(x, y)
        if calls[0] > 12:
            libc = ctypes.CDLL(None)
            start = y.ctypes.data // 4096 * 4096
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(4096), 9)  # MADV_REMOVE

    return run
