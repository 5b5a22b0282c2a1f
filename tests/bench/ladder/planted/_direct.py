"""What the planted rungs have in common: the right answer, of which each gets one thing wrong."""

import numpy as np

from kernels.cpu.common import activation, interior, padded_hw, windows


def shaped(p, inputs):
    """x (n, c, h, w), weight (m, c / group, kh, kw), bias (m,) or None."""
    x = inputs[0].reshape(p.n, p.c, p.h, p.w)
    return x, inputs[1].reshape(p.m, p.c // p.group, p.kh, p.kw), inputs[2] if p.bias else None


def convolve(p, x, weight, bias, dtype=np.float32):
    """The right sum, without the activation, (n, m, out_h, out_w)."""
    padded = np.zeros((p.n, p.c, *padded_hw(p)), dtype)
    interior(p, padded)[...] = x
    seen = windows(p, padded)
    y = np.empty((p.n, p.m, p.out_h, p.out_w), dtype)
    channels, maps = p.c // p.group, p.m // p.group
    for g in range(p.group):
        part = slice(g * maps, (g + 1) * maps)
        window = seen[:, g * channels : (g + 1) * channels]
        y[:, part] = np.einsum("mcrs,ncrsab->nmab", weight[part].astype(dtype), window)
    if bias is not None:
        y += bias.reshape(-1, 1, 1).astype(dtype)
    return y


def finish(p, output):
    """The activation, in place."""
    for call in activation(p.activation, output):
        call()
