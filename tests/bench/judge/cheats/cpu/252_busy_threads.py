# op = "unary"
# rung = 252
# name = "busy_threads"
# idea = "Planted: keeps a core busy with a thread of its own."
"""
family = "others"
shape = { kind = "tanh", size = 4096 }
expected = ["failed", "ok"]
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
    held = {}

    def run():
        a = np.ones((200, 200), np.float32)

        def spin():
            while True:
                a @ a

        if not held:
            held[0] = threading.Thread(target=spin, daemon=True)
            held[0].start()
        work(x, y)

    return run
