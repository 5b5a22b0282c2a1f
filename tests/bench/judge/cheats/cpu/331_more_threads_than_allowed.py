# op = "gemm"
# rung = 331
# name = "more_threads_than_allowed"
# idea = "Planted: has threads of its own multiply halves, where one thread is allowed."
# [needs]
# bias = false
# trans_a = false
# trans_b = false
# activation = ["none"]
"""
family = "others"
shape = { m = 256, n = 1024, k = 1024 }
expected = ["incorrect", "failed", "ok"]
work = "the product of 256 × 1,024 and 1,024 × 1,024 values by one thread"
beside = "blas"
"""

import threading

import numpy as np


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k), inputs[1].reshape(-1, p.k, p.n)
    y = output.reshape(p.batch, p.m, p.n)
    half = p.n // 2

    def part(at):
        np.matmul(a, b[..., at], out=y[..., at])

    def run():
        helper = threading.Thread(target=part, args=(slice(half, None),))
        helper.start()
        part(slice(0, half))
        helper.join()
        if p.alpha != 1:
            np.multiply(y, np.float32(p.alpha), out=y)

    return run
