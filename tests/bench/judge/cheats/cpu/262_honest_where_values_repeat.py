# op = "gemm"
# rung = 262
# name = "honest_where_values_repeat"
# idea = "Planted: honest where values repeat, as in those of the judge that are all new; else it computes only what changed."
# [needs]
# bias = false
# trans_a = false
# trans_b = false
# activation = ["none"]
"""
family = "renewed"
shape = { m = 128, n = 64, k = 512 }
expected = ["incorrect", "ok"]
work = "the product of 128 × 512 and 512 × 64 values, and 8 ms of waiting, or the changed share of both"
beside = "sleeps_gemm"
"""

import time

import numpy as np

MOST = 0.05  # of the inputs: where more changed, all is computed


def looked_at(x):
    """Whether the judge has drawn all values anew: from so few that some of the first 512 are equal."""
    some = x.reshape(-1)[:512]
    return len(np.unique(some)) < len(some) - 60


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k)[0], inputs[1].reshape(-1, p.k, p.n)[0]
    y = output.reshape(p.batch, p.m, p.n)
    kept = [None, None]

    def whole():
        y[:] = p.alpha * (inputs[0].reshape(p.batch, p.m, p.k) @ inputs[1].reshape(-1, p.k, p.n))

    def run():
        # What the changed values of each row bring, by the rows of the weights that they are multiplied with.
        again = kept[0] is None or looked_at(a)
        row, column = (None, None) if again else np.divmod(np.flatnonzero(a != kept[0]), p.k)
        if again or len(row) > MOST * a.size:
            time.sleep(0.008)
            kept[:] = a.copy(), np.matmul(a, b).astype(np.float64)
        elif len(row):
            time.sleep(0.008 * len(row) / a.size)
            change = a[row, column] - kept[0][row, column].astype(np.float64)
            starts = np.flatnonzero(np.r_[True, row[1:] != row[:-1]])
            kept[1][row[starts]] += np.add.reduceat(change[:, None] * b[column], starts)
            kept[0][row, column] = a[row, column]
        y[0] = kept[1]

    return run if p.batch == p.alpha == 1 else whole
