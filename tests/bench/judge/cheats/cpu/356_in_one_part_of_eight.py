# op = "unary"
# rung = 356
# name = "in_one_part_of_eight"
# idea = "Planted: leaves out an eighth of each train, which is a sample of its own."
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
    last, number, trains = [None], [0], [0]

    def run():
        frame = train()
        if frame is not last[0]:
            last[0], number[0] = frame, 0
            trains[0] += 1
        number[0] += 1
        left = 0
        if frame is not None and trains[0] > 3:
            count, untimed = frame.f_locals["count"], frame.f_locals["untimed"]
            left = max(1, count // 8)
            if 0 < number[0] - untimed <= left:
                return
        work(x, y)

    return run
