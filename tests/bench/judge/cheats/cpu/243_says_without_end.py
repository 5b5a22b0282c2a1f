# op = "unary"
# rung = 243
# name = "says_without_end"
# idea = "Planted: says that an answer of 4 GiB follows."
"""
family = "machinery"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import gc
import socket
import struct
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

    def run():
        for o in gc.get_objects():
            if isinstance(o, socket.socket):
                o.send(struct.pack("<BI", 1, 0xFFFFFFFF))
        work(x, y)

    return run
