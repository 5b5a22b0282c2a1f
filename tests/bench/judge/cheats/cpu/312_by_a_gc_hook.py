# op = "unary"
# rung = 312
# name = "by_a_gc_hook"
# idea = "Planted: leaves the work to a hook of the garbage collector."
"""
family = "later"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok", "timed_out", "invalid"]
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
    calls = [0]
    held = {}

    def collected(phase, info):
        if phase == "start" and held.pop(0, False):
            work(x, y)

    gc.callbacks.append(collected)
    gc.set_threshold(50)

    def run():
        calls[0] += 1
        if calls[0] < 12:
            work(x, y)
        else:
            held[0] = True

    return run
