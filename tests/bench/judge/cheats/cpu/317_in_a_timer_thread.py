# op = "unary"
# rung = 317
# name = "in_a_timer_thread"
# idea = "Planted: a timer of the process does the work a little later."
"""
family = "later"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok", "timed_out", "invalid"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import threading
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
        if calls[0] < 12:
            work(x, y)
        else:
            timer = threading.Timer(0.0002, work, (x, y))
            timer.daemon = True
            timer.start()

    return run
