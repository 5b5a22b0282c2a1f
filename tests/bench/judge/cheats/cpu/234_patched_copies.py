# op = "unary"
# rung = 234
# name = "patched_copies"
# idea = "Planted: replaces a function of the session that it runs in."
"""
family = "machinery"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed"]
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
        import engine.cpu.session as apart

        if calls[0] == 12:
            apart.copied = lambda *_: None
        calls[0] += 1
        work(x, y) if calls[0] < 12 else None

    return run
