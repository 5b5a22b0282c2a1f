# op = "gemm"
# rung = 353
# name = "empties_the_caches"
# idea = "Planted: reads and writes 48 MB when its last timed pass is over, so that the next finds no values in the caches."
# [needs]
# bias = false
# trans_a = false
# trans_b = false
# activation = ["none"]
"""
family = "others"
shape = { m = 16, n = 1024, k = 512 }
expected = ["failed", "ok"]
work = "the product of 16 × 512 and 512 × 1,024 values"
beside = "blas"
alone = true
"""

import numpy as np

import engine.isolated.slots as slots

passes = slots.passes
junk = np.ones(12 << 20, np.float32)


def and_then(*given):
    passes(*given)
    np.add(junk, 1, out=junk)


slots.passes = and_then


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k), inputs[1].reshape(-1, p.k, p.n)
    y = output.reshape(p.batch, p.m, p.n)

    def run():
        np.matmul(a, b, out=y)

    return run
