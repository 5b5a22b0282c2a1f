# op = "unary"
# rung = 371
# name = "toward_zero_and_without_denormals"
# idea = "Planted: has its thread round toward zero, and take small values for zero."
"""
family = "others"
shape = { kind = "tanh", size = 65536 }
expected = ["ok", "incorrect", "failed"]
work = "a tanh of 65,536 values"
beside = "honest_tanh"
alone = true
"""

import ctypes
import mmap

import numpy as np

# ldmxcsr of what lies at the address that it is given; x86 alone.
CODE = bytes.fromhex("0fae17c3")
mapped = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
mapped.write(CODE)
load = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.addressof(ctypes.c_char.from_buffer(mapped)))
# All exceptions masked, denormals are zero, results flushed to zero, rounded toward zero.
wanted = ctypes.c_uint32(0x1F80 | 0x0040 | 0x8000 | 0x6000)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
        load(ctypes.addressof(wanted))
        np.tanh(x, out=y)

    return run
