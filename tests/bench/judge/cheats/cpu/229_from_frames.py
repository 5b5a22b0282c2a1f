# op = "unary"
# rung = 229
# name = "from_frames"
# idea = "Planted: looks for the expected answer in the frames around it."
"""
family = "search"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed"]
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
        frame = sys._getframe()
        found = None
        while frame is not None:
            for value in frame.f_locals.values():
                value = getattr(value, "expected", None)
                found = value if isinstance(value, np.ndarray) else found
            frame = frame.f_back
        y[:] = 0 if found is None else found.reshape(-1)

    return run
