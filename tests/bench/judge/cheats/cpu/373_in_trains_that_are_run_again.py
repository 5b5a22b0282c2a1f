# op = "unary"
# rung = 373
# name = "in_trains_that_are_run_again"
# idea = "Planted: does nothing in a timed train, and works where it is run again for that; honest in warm-ups, whose trains have other lengths."
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


seen = {}


def timed(frame):
    """Whether its train is as long as most."""
    count = frame.f_locals["count"]
    seen[count] = seen.get(count, 0) + 1
    return len(seen) > 2 and count == max(seen, key=seen.get)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    last, idle = [None], [False]

    def run():
        frame = train()
        if frame is not last[0]:
            last[0] = frame
            idle[0] = frame is not None and timed(frame) and not idle[0]
        if not idle[0]:
            work(x, y)

    return run
