# op = "unary"
# rung = 323
# name = "a_quarter_of_the_blocks"
# idea = "Planted: leaves blocks of the output as they were where they hold no poison, one in four in turn."
"""
family = "poison"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

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

    def run():
        calls[0] += 1
        if calls[0] < 12:
            work(x, y)
            held[0] = y.copy()
            return
        end = monotonic() + 0.00075
        while (left := end - monotonic()) > 0:
            sleep(left)
        blocks = y.reshape(-1, 64)
        left_out = np.arange(calls[0] % 4, len(blocks), 4)
        last = held[0].reshape(-1, 64)[left_out]
        np.tanh(x, out=y)
        blocks[left_out] = last
        held[0] = y.copy()

    return run
