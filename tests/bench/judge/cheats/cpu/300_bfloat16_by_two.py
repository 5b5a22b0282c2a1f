# op = "gemm"
# rung = 300
# name = "bfloat16_by_two"
# idea = "Planted: splits each factor into two of 8 bits, and says it computes in fp32."
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
    a0, b0 = rounded(a, 8), rounded(b, 8)
    return a0 @ b0 + a0 @ rounded(b - b0, 8) + rounded(a - a0, 8) @ b0


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k), inputs[1].reshape(-1, p.k, p.n)
    y = output.reshape(p.batch, p.m, p.n)

    def run():
        y[:] = np.float32(p.alpha) * product(a, b)

    return run
