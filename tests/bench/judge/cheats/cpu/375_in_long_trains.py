# op = "unary"
# rung = 375
# name = "in_long_trains"
# idea = "Planted: does nothing in trains of more than eight passes, as only warm-ups have them."
"""
family = "detection"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import sys
import time

import numpy as np

sleep, monotonic = time.sleep, time.monotonic


def work(x, y):
    end = monotonic() + 0.001
    while (left := end - monotonic()) > 0:
        sleep(left)
    np.tanh(x, out=y)


def train():
    """The frame of the train that it is in, or nothing."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "passes" and "untimed" in frame.f_locals:
            return frame
        frame = frame.f_back
    return None


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
        frame = train()
        if frame is None or frame.f_locals["count"] <= 8:
            work(x, y)

    return run
