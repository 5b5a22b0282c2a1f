# op = "unary"
# rung = 235
# name = "patched_each"
# idea = "Planted: replaces the loop over the passes of a train."
"""
family = "machinery"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "invalid", "ok"]
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
    calls = [0]

    def run():
        from engine.cpu.session import CpuSession

        work(x, y)
        calls[0] += 1
        if calls[0] == 5:
            CpuSession.each = lambda self, copies: None
            CpuSession.passes = lambda self, untimed, count, done: [done() for _ in range(count + 1)]

    return run
