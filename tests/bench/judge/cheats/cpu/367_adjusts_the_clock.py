# op = "unary"
# rung = 367
# name = "adjusts_the_clock"
# idea = "Planted: sets the rate of the system's clock, to what it is."
"""
family = "others"
shape = { kind = "tanh", size = 4096 }
expected = ["ok", "failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import ctypes
import time

import numpy as np

sleep, monotonic = time.sleep, time.monotonic
libc = ctypes.CDLL(None, use_errno=True)
FREQUENCY = 2  # of struct timex: what of it is to be set


def meddle():
    told = (ctypes.c_long * 32)()
    libc.adjtimex(told)
    told[0] = FREQUENCY
    if libc.adjtimex(told) < 0:
        raise OSError(ctypes.get_errno(), "the clock is not to be set")


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
        if calls[0] == 12:
            meddle()
        work(x, y)

    return run
