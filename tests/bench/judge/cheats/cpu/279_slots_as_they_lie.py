# op = "gemm"
# rung = 279
# name = "slots_as_they_lie"
# idea = "Planted: computes all slots of a train as one product, straight into their outputs."
# [needs]
# bias = false
# trans_a = false
# trans_b = false
# activation = ["none"]
"""
family = "batch"
shape = { m = 1, n = 64, k = 1024 }
expected = ["incorrect", "failed", "crashed", "invalid", "ok"]
work = "the product of 1 × 1,024 and 1,024 × 64 values, and 0.2 ms of waiting"
beside = "sleeps_briefly"
"""

import gc
import time

import numpy as np


def waited(rows):
    """As long as for one."""
    time.sleep(0.0002)
    return rows


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k), inputs[1].reshape(-1, p.k, p.n)
    y = output.reshape(p.batch, p.m, p.n)
    calls = [0]

    def whole():
        time.sleep(0.0002)
        np.matmul(a, b, out=y)
        if p.alpha != 1:
            np.multiply(y, np.float32(p.alpha), out=y)

    def replaced(self, copies):
        rows = np.stack([ins[0][1].reshape(-1) for ins, _ in copies])
        for (_, outs), answer in zip(copies, waited(rows) @ b[0], strict=True):
            outs[0][0].reshape(-1)[:] = answer

    def run():
        calls[0] += 1
        if calls[0] == 8:
            for held in gc.get_objects():
                if type(held).__name__ == "CpuSession" and hasattr(held, "each"):
                    type(held).each = replaced
        whole()

    return run if p.batch == p.alpha == p.m == 1 else whole
