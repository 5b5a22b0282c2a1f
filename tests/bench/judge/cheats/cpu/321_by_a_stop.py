# op = "unary"
# rung = 321
# name = "by_a_stop"
# idea = "Planted: does nothing in the first calls after its process was stopped."
"""
family = "detection"
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
    held = {}
    seen = [monotonic()]

    def tick():
        while True:
            sleep(0.001)
            seen[0] = max(seen[0], monotonic() - 0.0005)

    def run():
        if 0 in held and held[0].is_alive() and monotonic() - seen[0] > 0.003:
            held[1] = 6
        seen[0] = monotonic()
        if held.get(1, 0) > 0:
            held[1] -= 1
            return
        if 0 not in held:
            held[0] = threading.Thread(target=tick, daemon=True)
            held[0].start()
        work(x, y)

    return run
