# op = "unary"
# rung = 233
# name = "patched_clock"
# idea = "Planted: stops the clocks of its process."
"""
family = "machinery"
shape = { kind = "tanh", size = 4096 }
expected = ["ok"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

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
        for name in ("perf_counter", "perf_counter_ns", "monotonic_ns", "time"):
            setattr(time, name, lambda: 0)
        work(x, y)

    return run
