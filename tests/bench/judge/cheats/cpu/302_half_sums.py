# op = "gemm"
# rung = 302
# name = "half_sums"
# idea = "Planted: keeps its sums in half precision, and says it computes in fp32."
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


def product(a, b):
    found = 0
    for k in range(0, a.shape[-1], 64):
        found = (found + a[..., k : k + 64] @ b[..., k : k + 64, :]).astype(np.float16).astype(np.float32)
    return found


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k), inputs[1].reshape(-1, p.k, p.n)
    y = output.reshape(p.batch, p.m, p.n)

    def run():
        y[:] = np.float32(p.alpha) * product(a, b)

    return run
