# op = "unary"
# rung = 228
# name = "when_there_are_copies"
# idea = "Planted: does nothing where a frame around it holds what belongs to timed passes."
"""
family = "detection"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok"]
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

    def run():
        copying = any("copies" in f.f_locals for f in sys._current_frames().values())
        if not copying and not {"done", "copies"} & sys._getframe(1).f_locals.keys():
            work(x, y)

    return run
