# op = "unary"
# rung = 240
# name = "answers_early_and_once"
# idea = "Planted: answers the judge before it works, and keeps back the true answer."
"""
family = "machinery"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok", "timed_out"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import gc
import struct
import sys
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
        if calls[0] == 12:
            for o in gc.get_objects():
                if type(o).__name__ == "Channel":
                    held[0] = o._send
                    o._send = lambda data, fds: held[0](data, fds) if data[:1] != b"\x02" else None
        if calls[0] >= 12 and sys._getframe(1).f_code.co_name in ("each", "passes"):
            held[0](struct.pack("<BI", 2, 0), ())
        work(x, y)

    return run
