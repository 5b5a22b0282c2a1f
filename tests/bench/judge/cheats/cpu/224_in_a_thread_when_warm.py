# op = "unary"
# rung = 224
# name = "in_a_thread_when_warm"
# idea = "Planted: leaves the work to a thread once it is warm."
"""
family = "later"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok"]
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
            threading.Thread(target=work, args=(x, y), daemon=True).start()

    return run
