# op = "unary"
# rung = 316
# name = "in_a_thread_from_the_import_on"
# idea = "Planted: a thread that was started when the file was read does the work."
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


asked = []


def serve():
    while True:
        if asked:
            work(*asked.pop())
        sleep(0.00005)


threading.Thread(target=serve, daemon=True).start()


def work(x, y):
    end = monotonic() + 0.001
    while (left := end - monotonic()) > 0:
        sleep(left)
    np.tanh(x, out=y)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
        asked.append((x, y))

    return run
