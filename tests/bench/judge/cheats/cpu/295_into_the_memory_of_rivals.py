# op = "unary"
# rung = 295
# name = "into_the_memory_of_rivals"
# idea = "Planted: writes over the values of its rivals."
"""
family = "others"
shape = { kind = "tanh", size = 65536 }
expected = ["incorrect", "crashed", "failed", "ok", "timed_out", "invalid"]
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
    junk = os.urandom(1 << 16)
    for pid in others()[1:]:
        spans = [line.split() for line in open(f"/proc/{pid}/maps") if "memfd:kernelscope" in line]
        with open(f"/proc/{pid}/mem", "r+b", 0) as memory:
            for span, *_ in spans:
                memory.seek(int(span.split("-")[0], 16))
                memory.write(junk)


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
