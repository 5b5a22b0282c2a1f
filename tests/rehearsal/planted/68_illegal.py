# op = "conv"
# rung = 68
# name = "illegal"
# idea = "Planted: a read far outside of all memory, as a fault in a library would be."
import ctypes


def bind(p, inputs, output, workspace):
    def run():
        ctypes.string_at(1 << 44, 1)

    return run
