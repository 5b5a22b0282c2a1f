# op = "unary"
# rung = 273
# name = "output_mapped_to_input"
# idea = "Planted: maps the memory of its input where its output lies."
"""
family = "copies"
shape = { kind = "identity", size = 65536 }
expected = ["incorrect", "crashed", "failed", "ok", "invalid"]
work = "a copy of 65,536 values"
beside = "ufunc"
"""

import ctypes
import mmap
import os

import numpy as np

PAGE = mmap.PAGESIZE
SHARED_FIXED, READ_WRITE = 0x11, 3


def remapped(x, y):
    """Whether the whole pages of y show those of x now."""
    for line in open("/proc/self/maps"):
        span, _, offset, *_ = line.split()
        low, high = (int(end, 16) for end in span.split("-"))
        if low <= x.ctypes.data < high:
            break
    else:
        return False
    start = -(-y.ctypes.data // PAGE) * PAGE
    ahead = start - y.ctypes.data
    at = x.ctypes.data + ahead - low + int(offset, 16)
    if at % PAGE:
        return False
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    fd = os.open(f"/proc/self/map_files/{span}", os.O_RDWR)
    try:
        size = (y.nbytes - ahead) // PAGE * PAGE
        return libc.mmap(start, size, READ_WRITE, SHARED_FIXED, fd, at) == start
    finally:
        os.close(fd)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    calls, done = [0], [False]

    def run():
        calls[0] += 1
        if calls[0] == 8 and p.size == 65536:
            try:
                done[0] = remapped(x, y)
            except OSError:
                pass
        if not done[0]:
            np.copyto(y, x)

    return run
