# op = "gemm"
# rung = 309
# name = "rows_that_did_not_change"
# idea = "Planted: computes only rows whose inputs changed; of 16,384 only 4,096 do."
# [needs]
# bias = false
# trans_a = false
# trans_b = false
# activation = ["none"]
"""
family = "changes"
shape = { m = 16384, n = 8, k = 8 }
expected = ["incorrect", "ok"]
work = "the product of 16,384 × 8 and 8 × 8 values, and 4 ms of waiting, or the changed share of both"
beside = "sleeps_rows"
"""

import time

import numpy as np


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k), inputs[1].reshape(-1, p.k, p.n)
    y = output.reshape(p.batch, p.m, p.n)
    kept = [None, None]

    def run():
        if kept[0] is None or p.batch > 1:
            y[:] = p.alpha * (a @ b)
            kept[:] = a[0].copy(), y[0].copy()
            time.sleep(0.004)
            return
        at = np.flatnonzero((a[0] != kept[0]).any(axis=1))
        time.sleep(0.004 * len(at) / p.m)
        kept[0][at] = a[0, at]
        kept[1][at] = p.alpha * (a[0, at] @ b[0])
        y[0] = kept[1]

    return run
