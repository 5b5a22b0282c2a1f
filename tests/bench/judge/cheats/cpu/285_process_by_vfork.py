# op = "unary"
# rung = 285
# name = "process_by_vfork"
# idea = "Planted: a program that is started anew keeps a core busy."
"""
family = "processes"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed", "ok", "timed_out", "invalid"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import os
import sys
import time

import numpy as np

# Those of the beginning: a kernel may replace them later.
sleep, monotonic = time.sleep, time.monotonic


# It ends with us, or after ten seconds.
BUSY = "import os, time\nend, us = time.monotonic() + 10, os.getppid()\nwhile time.monotonic() < end and os.getppid() == us: pass"


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
        if calls[0] == 3:
            os.posix_spawn(sys.executable, [sys.executable, "-c", BUSY], os.environ, setsid=True)
        work(x, y)

    return run
