# op = "gemm"
# rung = 267
# name = "faster_than_the_machine"
# idea = "Planted: remembers, and skips what did not change; its time is far beyond the machine's limit."
# [needs]
# bias = false
# trans_a = false
# trans_b = false
# activation = ["none"]
"""
family = "limit"
shape = { m = 8192, n = 1024, k = 64 }
expected = ["incorrect", "invalid", "ok"]
work = "the product of 8,192 × 64 and 64 × 1,024 values"
beside = "blas"
"""

import numpy as np


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k), inputs[1].reshape(-1, p.k, p.n)
    y = output.reshape(p.batch, p.m, p.n)
    x = a[0]
    kept = [None, None]

    def whole():
        np.matmul(a, b, out=y)
        if p.alpha != 1:
            np.multiply(y, np.float32(p.alpha), out=y)

    def run():
        changed = None if kept[0] is None else np.flatnonzero((x != kept[0]).any(axis=1))
        if changed is None or len(changed) > 0.6 * p.m:
            whole()
            kept[:] = x.copy(), y[0].copy()
            return
        kept[0][changed] = x[changed]
        kept[1][changed] = x[changed] @ b[0]
        y[0] = kept[1]

    return run if p.batch == p.alpha == 1 else whole
