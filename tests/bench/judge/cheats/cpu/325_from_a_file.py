# op = "unary"
# rung = 325
# name = "from_a_file"
# idea = "Planted: keeps answers by a few values in a file, for its further instances."
"""
family = "search"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import atexit
import os
import time

import numpy as np

# Those of the beginning: a kernel may replace them later.
sleep, monotonic = time.sleep, time.monotonic


def gone(path):
    try:
        os.unlink(path)
    except OSError:
        pass


def work(x, y):
    end = monotonic() + 0.001
    while (left := end - monotonic()) > 0:
        sleep(left)
    np.tanh(x, out=y)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    held = {}

    def run():
        path = f"/tmp/{x[:4].tobytes().hex()}-{os.getppid()}.kept"
        try:
            with open(path, "rb") as file:
                y[:] = np.frombuffer(file.read(), np.float32)
        except OSError:
            work(x, y)
            held.setdefault(0, []).append(path)
            with open(path, "wb") as file:
                file.write(y.tobytes())
            atexit.register(gone, path)

    return run
