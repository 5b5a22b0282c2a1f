# op = "unary"
# rung = 282
# name = "clone_parent"
# idea = "Planted: a process that is its parent's child, in a session of its own, does the work."
"""
family = "processes"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok", "timed_out", "invalid"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import ctypes
import os
import signal
import time

import numpy as np

# Those of the beginning: a kernel may replace them later.
sleep, monotonic = time.sleep, time.monotonic


CLONE_PARENT, SYS_CLONE = 0x8000, 56  # of x86-64


def cloned():
    return ctypes.CDLL(None).syscall(SYS_CLONE, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)


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
        elif cloned() == 0:
            os.setsid()
            work(x, y)
            os._exit(0)

    return run
