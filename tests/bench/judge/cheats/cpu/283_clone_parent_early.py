# op = "unary"
# rung = 283
# name = "clone_parent_early"
# idea = "Planted: a process that is its parent's child works ahead of every pass."
"""
family = "processes"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok", "timed_out", "invalid"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import ctypes
import mmap
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
    shared = mmap.mmap(-1, 4 * x.size + 64)  # of this process and those that are cloned from it
    ready, said = np.frombuffer(shared, np.float32, x.size), memoryview(shared)[4 * x.size :]

    def run():
        calls[0] += 1
        if calls[0] == 2 and x.size == 4096 and cloned() == 0:
            os.setsid()
            last = b""
            while os.getppid() != 1:
                if (key := x[:16].tobytes()) != last:
                    np.tanh(x, out=ready)
                    last = said[:] = key
        if bytes(said) == x[:16].tobytes():
            y[:] = ready
        else:
            work(x, y)

    return run
