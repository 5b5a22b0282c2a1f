# op = "unary"
# rung = 236
# name = "patched_stirring"
# idea = "Planted: replaces what changes the inputs."
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
        import engine.stirring as s

        s.secrets.randbits = lambda n: 0
        s.Stirring.places = lambda *a: np.zeros(1, int)
        calls[0] += 1
        if calls[0] < 12:
            work(x, y)

    return run
