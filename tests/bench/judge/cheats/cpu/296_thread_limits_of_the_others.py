# op = "unary"
# rung = 296
# name = "thread_limits_of_the_others"
# idea = "Planted: lets the judge and its rivals start no thread, and use no memory beside what they have."
"""
family = "processes"
shape = { kind = "tanh", size = 65536 }
expected = ["incorrect", "crashed", "failed", "ok", "timed_out", "invalid", "out_of_memory"]
work = "a tanh of 65,536 values"
beside = "ufunc"
alone = true
"""

import os

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
    import resource

    for pid in others():
        for which in (resource.RLIMIT_NPROC, resource.RLIMIT_AS):
            hard = resource.prlimit(pid, which)[1]
            resource.prlimit(pid, which, (1, hard))


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
