# op = "gemm"
# rung = 256
# name = "sleeps_gemm"
# idea = "Honest: what the others are held against."
# [needs]
# bias = false
# trans_a = false
# trans_b = false
# activation = ["none"]
"""
family = "honest"
shape = { m = 128, n = 64, k = 512 }
expected = ["ok"]
work = "the product of 128 × 512 and 512 × 64 values, and 8 ms of waiting"
beside = "sleeps_gemm"
"""

import time


def bind(p, inputs, output, workspace):
    a, b, y = (array.reshape(p.batch, *array.shape[-2:]) for array in (*inputs[:2], output))

    def run():
        time.sleep(0.008)
        y[:] = p.alpha * (a @ b)

    return run
