# op = "pool"
# rung = 1
# name = "positions"
# idea = "Takes the maximum (or the sum) over the kernel's positions, one shifted image at a time."
"""y = max or mean over (i, j) of x shifted by (i, j), padding never winning and counted as asked, then the
activation."""

import numpy as np

from kernels.cpu.common import activation, carve, counts, interior, padded_hw, scratch_nbytes, windows


def workspace(p):
    return scratch_nbytes((p.n, p.c, *padded_hw(p)))


def bind(p, inputs, output, workspace):
    x = inputs[0].reshape(p.n, p.c, p.h, p.w)
    y = output.reshape(p.n, p.c, p.out_h, p.out_w)
    (padded,) = carve(workspace, (p.n, p.c, *padded_hw(p)))
    inside = interior(p, padded)
    shifted = windows(p, padded)  # (n, c, kh, kw, out_h, out_w)
    largest = p.kind == "max"
    combine = np.maximum if largest else np.add
    divisor = None if largest else counts(p)
    finish = activation(p.activation, y)

    def run():
        padded.fill(-np.inf if largest else 0)
        np.copyto(inside, x)
        np.copyto(y, shifted[:, :, 0, 0])
        for i in range(p.kh):
            for j in range(p.kw):
                if i or j:
                    combine(y, shifted[:, :, i, j], out=y)
        if divisor is not None:
            np.divide(y, divisor, out=y)
        for call in finish:
            call()

    return run
