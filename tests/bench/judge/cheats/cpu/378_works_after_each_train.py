# op = "unary"
# rung = 378
# name = "works_after_each_train"
# idea = "Planted: works for another millisecond after the last pass of each train."
"""
family = "later"
shape = { kind = "tanh", size = 4096 }
expected = ["failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import time

import numpy as np

import engine.isolated.slots as slots

sleep, monotonic = time.sleep, time.monotonic


def work(x, y):
    end = monotonic() + 0.001
    while (left := end - monotonic()) > 0:
        sleep(left)
    np.tanh(x, out=y)


passes = slots.passes


def and_then(*given):
    passes(*given)
    end = monotonic() + 0.001
    while monotonic() < end:
        pass


slots.passes = and_then


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
        work(x, y)

    return run
