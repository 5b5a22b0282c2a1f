# op = "unary"
# rung = 313
# name = "by_an_audit_hook"
# idea = "Planted: leaves the work to a hook that the next message of the process sets off."
"""
family = "later"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok", "timed_out", "invalid"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import sys
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
    held = {}

    def heard(event, arguments):
        if event.startswith(("socket", "pickle")) and held.pop(0, False):
            work(x, y)

    sys.addaudithook(heard)

    def run():
        calls[0] += 1
        if calls[0] < 12:
            work(x, y)
        else:
            held[0] = True

    return run
