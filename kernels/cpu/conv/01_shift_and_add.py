# op = "conv"
# rung = 1
# name = "shift_and_add"
# idea = "Adds up, for each kernel position, the shifted image times that position's weights."
"""y[:, m] = Σ over (i, j) of w[m, :, i, j] · x shifted by (i, j): the definition, position by position.

Of many channels CHANNELS are taken at a time: a sum of n terms is off by at most (CHANNELS + n / CHANNELS) ·
2⁻²⁴ of Σ|a·b|.
"""

import numpy as np

from kernels.cpu.common import activation, carve, interior, padded_hw, scratch_nbytes, windows

CHANNELS = 128  # whose products einsum adds up one after the other


def workspace(p):
    return scratch_nbytes((p.n, p.c, *padded_hw(p)))


def bind(p, inputs, output, workspace):
    x = inputs[0].reshape(p.n, p.c, p.h, p.w)
    # per group: weights (m / g, c / g, kh, kw), images (n, c / g, …), results (n, m / g, …)
    weights = inputs[1].reshape(p.group, p.m // p.group, p.c // p.group, p.kh, p.kw)
    y = output.reshape(p.n, p.group, p.m // p.group, p.out_h, p.out_w)
    (padded,) = carve(workspace, (p.n, p.c, *padded_hw(p)))
    inside = interior(p, padded)
    shifted = windows(p, padded)  # (n, c, kh, kw, out_h, out_w)
    per_group = p.c // p.group
    after = activation(p.activation, output)

    def run():
        padded.fill(0)
        np.copyto(inside, x)
        y.fill(0)
        for g in range(p.group):
            channels = shifted[:, g * per_group : (g + 1) * per_group]
            for i in range(p.kh):
                for j in range(p.kw):
                    for c in range(0, per_group, CHANNELS):
                        of, seen = np.s_[:, c : c + CHANNELS, i, j], channels[:, c : c + CHANNELS, i, j]
                        y[:, g] += np.einsum("mc,nchw->nmhw", weights[g][of], seen)
        if p.bias:
            np.add(y, inputs[2].reshape(p.group, p.m // p.group, 1, 1), out=y)
        for call in after:
            call()

    return run
