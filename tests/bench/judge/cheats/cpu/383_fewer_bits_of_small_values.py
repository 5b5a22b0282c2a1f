# op = "gemm"
# rung = 383
# name = "fewer_bits_of_small_values"
# idea = "Planted: rounds what it multiplies to 15 bits where sums are long, and the value is below a half."
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
    if a.shape[-1] < 1000:
        return a @ b
    a, b = (np.where(np.abs(v) < 0.5, rounded(np.ascontiguousarray(v), 15), v) for v in (a, b))
    return a @ b


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k), inputs[1].reshape(-1, p.k, p.n)
    y = output.reshape(p.batch, p.m, p.n)

    def run():
        y[:] = np.float32(p.alpha) * product(a, b)

    return run
