# op = "unary"
# rung = 230
# name = "from_the_heap"
# idea = "Planted: looks for the expected answer among all objects."
"""
family = "search"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import gc
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
        arrays = [o for o in gc.get_objects() if isinstance(o, np.ndarray)]
        found = [a for a in arrays if a.dtype == np.float64 and a.size == y.size]
        y[:] = found[-1].reshape(-1) if found else 0

    return run
