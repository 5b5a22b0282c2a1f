# op = "unary"
# rung = 281
# name = "arena_watched_by_a_thread"
# idea = "Planted: a thread watches where the inputs lie and works before the pass is begun."
"""
family = "batch"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok", "invalid"]
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
    working = []

    def ahead():
        last = b""
        while True:
            sleep(0.00005)
            if (key := x[:16].tobytes()) != last:
                last, held[key] = key, np.tanh(x)

    def run():
        if not working:
            working.append(threading.Thread(target=ahead, daemon=True))
            working[0].start()
        key = x[:16].tobytes()
        if key in held:
            y[:] = held.pop(key)
        else:
            work(x, y)

    return run
