# op = "unary"
# rung = 366
# name = "samples_a_core"
# idea = "Planted: has the system look at its core every ten microseconds while others run there."
"""
family = "others"
shape = { kind = "tanh", size = 65536 }
expected = ["failed", "ok"]
work = "a tanh of 65,536 values"
beside = "honest_tanh"
alone = true
"""

import ctypes
import fcntl
import os
import struct

import numpy as np

import engine.isolated.slots as slots

passes = slots.passes


def and_then(*given):
    passes(*given)
    leave()


slots.passes = and_then

libc = ctypes.CDLL(None)
OPEN = 298 if os.uname().machine == "x86_64" else 241
ENABLE, DISABLE = 0x2400, 0x2401
events = []


def made():
    attr = struct.pack("<IIQQQQQ", 1, 112, 0, 10_000, 0, 0, 1 | 1 << 20).ljust(112, b"\0")
    for core in range(os.cpu_count()):
        events.append(libc.syscall(OPEN, attr, -1, core, -1, 0))


def switch(what):
    for event in events:
        if event >= 0:
            fcntl.ioctl(event, what, 0)


def leave():
    if not events:
        made()
    switch(ENABLE)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    last = [0]

    def run():
        switch(DISABLE)
        np.tanh(x, out=y)

    return run
