# op = "unary"
# rung = 355
# name = "becomes_another_program"
# idea = "Planted: executes the program of its process anew in its place, with what it wants to be loaded first."
"""
family = "machinery"
shape = { kind = "tanh", size = 4096 }
expected = ["crashed", "failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import os
import sys
import time

import numpy as np

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
        if calls[0] == 12:
            told = [sys.executable, "-P", "-m", "engine.isolated.child", str(os.getppid()), ""]
            os.execve(sys.executable, told, os.environ | {"LD_PRELOAD": "/nowhere/faster.so"})
        work(x, y)

    return run
