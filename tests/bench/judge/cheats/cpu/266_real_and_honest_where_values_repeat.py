# op = "gemm"
# rung = 266
# name = "real_and_honest_where_values_repeat"
# idea = "Planted: a real product where values repeat; else what the changed values bring."
# [needs]
# bias = false
# trans_a = false
# trans_b = false
# activation = ["none"]
"""
family = "renewed"
shape = { m = 16, n = 4096, k = 2048 }
expected = ["incorrect", "ok"]
work = "the product of 16 × 2,048 and 2,048 × 4,096 values"
beside = "blas"
"""

import numpy as np


def looked_at(x):
    """Whether the judge has drawn all values anew: from so few that some of the first 512 are equal."""
    some = x.reshape(-1)[:512]
    return len(np.unique(some)) < len(some) - 60


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
        if kept[0] is None or looked_at(x):
            whole()
            kept[:] = x.copy(), y[0].copy()
            return
        row, column = np.nonzero(x != kept[0])
        if len(row) > 0.05 * x.size:
            whole()
            kept[:] = x.copy(), y[0].copy()
            return
        change = x[row, column] - kept[0][row, column]
        for i in range(p.m):
            mine = row == i
            kept[1][i] += change[mine] @ b[0][column[mine]]
        kept[0][row, column] = x[row, column]
        y[0] = kept[1]

    return run if p.batch == p.alpha == 1 else whole
