# op = "unary"
# rung = 374
# name = "first_train_of_a_turn"
# idea = "Planted: does nothing in the first timed train of every second turn."
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


turns, seen = [0], {}


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    last, idle, first = [None], [False], [True]

    def begun(frame):
        """A train has: whether nothing is done in it."""
        count = frame.f_locals["count"]
        if count == 1:
            turns[0] += 1
            first[0] = True
        seen[count] = seen.get(count, 0) + 1
        if not first[0] or count == 1 or count != max(seen, key=seen.get):
            return False
        first[0] = False
        return turns[0] % 2 == 0

    def run():
        frame = train()
        if frame is not last[0]:
            last[0] = frame
            idle[0] = frame is not None and begun(frame)
        if not idle[0]:
            work(x, y)

    return run
