# op = "unary"
# rung = 342
# name = "kills_one_rival_and_leaves"
# idea = "Planted: kills the newest of its rivals, and ends."
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
    for pid in sorted(others()[1:])[-1:]:
        os.kill(pid, signal.SIGKILL)
    os._exit(0)


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
