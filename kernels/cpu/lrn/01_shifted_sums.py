# op = "lrn"
# rung = 1
# name = "shifted_sums"
# idea = "Adds the squared channels, shifted one by one, and raises the sum to the power as defined."
"""y = x / (bias + alpha / size · Σ x²)^beta, the sum over channels c − ⌊(size−1)/2⌋ … c + ⌈(size−1)/2⌉."""

import numpy as np

from kernels.cpu.common import carve, scratch_nbytes


def _shapes(p):
    return (p.n, p.c + p.size - 1, p.inner), (p.n, p.c, p.inner)


def workspace(p):
    return scratch_nbytes(*_shapes(p))


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(p.n, p.c, p.inner), output.reshape(p.n, p.c, p.inner)
    squares, total = carve(workspace, *_shapes(p))  # the squares with channels of zeros before and after
    before = (p.size - 1) // 2

    def run():
        squares.fill(0)
        np.multiply(x, x, out=squares[:, before : before + p.c])
        np.copyto(total, squares[:, : p.c])
        for shift in range(1, p.size):
            np.add(total, squares[:, shift : shift + p.c], out=total)
        np.multiply(total, np.float32(p.alpha / p.size), out=total)
        np.add(total, np.float32(p.bias), out=total)
        np.power(total, np.float32(p.beta), out=total)
        np.divide(x, total, out=y)

    return run
