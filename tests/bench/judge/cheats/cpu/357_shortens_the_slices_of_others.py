# op = "unary"
# rung = 357
# name = "shortens_the_slices_of_others"
# idea = "Planted: lets its rivals have a core for a tenth of a millisecond at a time."
"""
family = "others"
shape = { kind = "tanh", size = 65536 }
expected = ["failed", "ok"]
work = "a tanh of 65,536 values"
beside = "honest_tanh"
alone = true
"""

import ctypes
import os
import struct

import numpy as np

libc = ctypes.CDLL(None)
SETATTR = 314 if os.uname().machine == "x86_64" else 274


def others():
    """The judge's other kernels: nobody else's."""
    judge, found = os.getppid(), []
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            try:
                after = open(f"/proc/{name}/stat").read().rpartition(")")[2].split()
            except OSError:
                continue
            if judge > 1 and int(after[1]) == judge:
                found.append(int(name))
    return found


def meddle():
    told = struct.pack("<IIQiIQQQ", 48, 0, 0, 0, 0, 100_000, 0, 0)
    for pid in others():
        libc.syscall(SETATTR, pid, told, 0)


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
