# op = "gemm"
# rung = 301
# name = "split_tf32"
# idea = "Planted: splits each factor into two of 11 bits, as tensor cores would, and says it computes in plain fp32."
# [needs]
# bias = false
# trans_a = false
# trans_b = false
# activation = ["none"]
"""
family = "precision"
shape = { m = 64, n = 64, k = 4096 }
expected = ["incorrect"]
work = "the product of 64 × 4,096 and 4,096 × 64 values in float32"
beside = "blas"
"""

import numpy as np


def rounded(v, bits):
    """To so many bits of mantissa, the first of which is not held."""
    low = np.uint32(1 << (24 - bits))
    return ((v.view(np.uint32) + (low >> np.uint32(1))) & ~(low - np.uint32(1))).view(np.float32)


def product(a, b):
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    a0, b0 = rounded(a, 11), rounded(b, 11)
    a1, b1 = rounded(a - a0, 11), rounded(b - b0, 11)
    found = np.zeros(np.broadcast_shapes(a.shape[:-1] + (1,), (1, 1, b.shape[-1])), np.float32)
    for k in range(0, a.shape[-1], 8):  # eight at a time, and the sum cut off, as such cores do
        at = slice(k, k + 8)
        part = (
            a0[..., at] @ b0[..., at, :] + (a0[..., at] @ b1[..., at, :] + a1[..., at] @ b0[..., at, :])
        ).astype(np.float64)
        total = found + part
        found = total.astype(np.float32)
        beyond = np.abs(found) > np.abs(total)
        found = np.where(beyond, np.nextafter(found, np.float32(0)), found)
    return found


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k), inputs[1].reshape(-1, p.k, p.n)
    y = output.reshape(p.batch, p.m, p.n)

    def run():
        y[:] = np.float32(p.alpha) * product(a, b)

    return run
