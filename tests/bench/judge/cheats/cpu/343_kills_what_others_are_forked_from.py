# op = "unary"
# rung = 343
# name = "kills_what_others_are_forked_from"
# idea = "Planted: kills the process that others are forked from."
"""
family = "processes"
shape = { kind = "tanh", size = 65536 }
expected = ["incorrect", "crashed", "failed", "ok", "timed_out", "invalid"]
work = "a tanh of 65,536 values"
beside = "ufunc"
alone = true
"""

import os
import signal

import numpy as np


def others():
    """The judge, and the processes of its other kernels: nobody else's."""
    judge = os.getppid()
    if judge <= 1:
        return []
    found = [judge]
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            try:
                after = open(f"/proc/{name}/stat").read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(after[1]) == judge:
                found.append(int(name))
    return found


def meddle():
    judge = os.getppid()
    for pid in others()[1:]:
        told = open(f"/proc/{pid}/cmdline", "rb").read()
        # It is started by its name, or a copy of the judge.
        if b"template" in told or told == open(f"/proc/{judge}/cmdline", "rb").read():
            os.kill(pid, signal.SIGKILL)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    calls = [0]

    def run():
        calls[0] += 1
        if calls[0] % 64 == 20:
            try:
                meddle()
            except OSError:
                pass
        np.tanh(x, out=y)

    return run
