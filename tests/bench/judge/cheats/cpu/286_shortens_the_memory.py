# op = "unary"
# rung = 286
# name = "shortens_the_memory"
# idea = "Planted: shortens the memory that it shares with the judge."
"""
family = "processes"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok", "timed_out", "invalid"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import os
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
        work(x, y)
        if calls[0] == 12:
            for span in os.listdir("/proc/self/map_files"):
                path = f"/proc/self/map_files/{span}"
                try:
                    if "memfd:kernelscope" in os.readlink(path):  # no file of the disk, wherever this lies
                        fd = os.open(path, os.O_RDWR)
                        os.ftruncate(fd, 0)
                        os.close(fd)
                except OSError:
                    pass

    return run
