# op = "gemm"
# rung = 333
# name = "sleeps_rows"
# idea = "Honest: what the others are held against."
# [needs]
# bias = false
# trans_a = false
# trans_b = false
# activation = ["none"]
"""
family = "honest"
shape = { m = 16384, n = 8, k = 8 }
expected = ["ok"]
work = "the product of 16,384 × 8 and 8 × 8 values, and 4 ms of waiting"
beside = "sleeps_rows"
"""

import time


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k), inputs[1].reshape(-1, p.k, p.n)
    y = output.reshape(p.batch, p.m, p.n)

    def run():
        time.sleep(0.004)
        y[:] = p.alpha * (a @ b)

    return run
