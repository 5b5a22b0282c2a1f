# op = "gemm"
# rung = 299
# name = "mantissa_of_17_bits"
# idea = "Planted: rounds what it multiplies to 17 bits, and says it computes in fp32."
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
    return rounded(np.ascontiguousarray(a), 17) @ rounded(np.ascontiguousarray(b), 17)


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k), inputs[1].reshape(-1, p.k, p.n)
    y = output.reshape(p.batch, p.m, p.n)

    def run():
        y[:] = np.float32(p.alpha) * product(a, b)

    return run
