# op = "gemm"
# rung = 339
# name = "sleeps_briefly"
# idea = "Honest: what the others are held against."
# [needs]
# bias = false
# trans_a = false
# trans_b = false
# activation = ["none"]
"""
family = "honest"
shape = { m = 1, n = 64, k = 1024 }
expected = ["ok"]
work = "the product of 1 × 1,024 and 1,024 × 64 values, and 0.2 ms of waiting"
beside = "sleeps_briefly"
"""

import time


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k), inputs[1].reshape(-1, p.k, p.n)
    y = output.reshape(p.batch, p.m, p.n)

    def run():
        time.sleep(0.0002)
        y[:] = p.alpha * (a @ b)

    return run
