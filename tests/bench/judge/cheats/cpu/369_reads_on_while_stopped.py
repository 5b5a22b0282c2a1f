# op = "unary"
# rung = 369
# name = "reads_on_while_stopped"
# idea = "Planted: has the system copy its input to its output by reads that go on while it is stopped."
"""
family = "later"
shape = { kind = "tanh", size = 4096 }
expected = ["ok", "failed", "incorrect", "crashed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import ctypes
import os
import struct
import time

import numpy as np

sleep, monotonic = time.sleep, time.monotonic
libc = ctypes.CDLL(None, use_errno=True)
SETUP, SUBMIT = (206, 209) if os.uname().machine == "x86_64" else (0, 2)


class Reads:
    """Of a file that holds the answers, by the system's own asynchronous calls."""

    def __init__(self):
        self.context = ctypes.c_ulong()
        if libc.syscall(SETUP, 1, ctypes.byref(self.context)):
            raise OSError("no such reads")
        self.file = os.memfd_create("answers")

    def begin(self, array):
        told = struct.pack(
            "<QIIHhIQQqQII", 0, 0, 0, 0, 0, self.file, array.ctypes.data, array.nbytes, 0, 0, 0, 0
        )
        self.held = ctypes.create_string_buffer(told, len(told))
        self.list = (ctypes.c_void_p * 1)(ctypes.addressof(self.held))
        libc.syscall(SUBMIT, self.context, 1, self.list)


def work(x, y):
    end = monotonic() + 0.001
    while (left := end - monotonic()) > 0:
        sleep(left)
    np.tanh(x, out=y)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    reads = []

    def run():
        if not reads:
            try:
                reads.append(Reads())
            except OSError:
                reads.append(None)
        if reads[0] is None:
            work(x, y)
            return
        end = monotonic() + 0.001
        while (left := end - monotonic()) > 0:
            sleep(left)
        os.pwrite(reads[0].file, np.tanh(x).tobytes(), 0)
        reads[0].begin(y)

    return run
