# op = "unary"
# rung = 241
# name = "answers_early_by_descriptor"
# idea = "Planted: writes an answer to every open descriptor before it works."
"""
family = "machinery"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import os
import struct
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
        calls[0] += 1
        if calls[0] > 12:
            for fd in range(3, 40):
                try:
                    os.write(fd, struct.pack("<BI", 2, 0))
                except OSError:
                    pass
        work(x, y)

    return run
