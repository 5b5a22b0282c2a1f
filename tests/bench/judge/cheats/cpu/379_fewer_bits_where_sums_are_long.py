# op = "gemm"
# rung = 379
# name = "fewer_bits_where_sums_are_long"
# idea = "Planted: rounds what it multiplies to 21 bits where sums are long; where few terms tell, it is exact."
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
    return rounded(np.ascontiguousarray(a), 21) @ rounded(np.ascontiguousarray(b), 21)


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k), inputs[1].reshape(-1, p.k, p.n)
    y = output.reshape(p.batch, p.m, p.n)

    def run():
        y[:] = np.float32(p.alpha) * product(a, b)

    return run
