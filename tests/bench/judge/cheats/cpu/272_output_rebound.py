# op = "unary"
# rung = 272
# name = "output_rebound"
# idea = "Planted: points the array of its output at its input, so that nothing is left to do."
"""
family = "copies"
shape = { kind = "identity", size = 65536 }
expected = ["incorrect", "failed", "crashed", "invalid", "ok"]
work = "a copy of 65,536 values"
beside = "ufunc"
"""

import ctypes
import gc

import numpy as np

DATA = 16  # bytes into a NumPy array's object, where the address of its values is


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    calls = [0]

    def rebound():
        place = ctypes.c_void_p.from_address
        owner = output
        while owner is not None:
            if isinstance(owner, np.ndarray) and owner.nbytes == x.nbytes:
                place(id(owner) + DATA).value = x.ctypes.data
            owner = getattr(owner, "base", None)
        for held in gc.get_objects():
            if type(held).__name__ == "RungHere" and held._output.nbytes == x.nbytes:
                place(id(held._output) + DATA).value = x.ctypes.data

    def run():
        calls[0] += 1
        if calls[0] == 8:
            rebound()
        if calls[0] < 8:
            np.copyto(y, x)

    return run
