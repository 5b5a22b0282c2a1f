# op = "unary"
# rung = 242
# name = "says_what_is_no_answer"
# idea = "Planted: writes text to every open descriptor."
"""
family = "machinery"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import os
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
        for fd in range(3, 40):
            try:
                os.write(fd, b'{"type": "Done"}\n' * 9)
            except OSError:
                pass
        work(x, y)

    return run
