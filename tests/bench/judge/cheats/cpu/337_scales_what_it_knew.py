# op = "gemm"
# rung = 337
# name = "scales_what_it_knew"
# idea = "Planted: looks up rows that are a multiple of an earlier row, and scales the answer that it gave."
# [needs]
# bias = false
# trans_a = false
# trans_b = false
# activation = ["none"]
"""
family = "renewed"
shape = { m = 128, n = 64, k = 512 }
expected = ["incorrect", "invalid", "ok"]
work = "the product of 128 × 512 and 512 × 64 values, and 8 ms of waiting, or as much of it as there are rows that are new"
beside = "sleeps_gemm"
"""

import time

import numpy as np


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k), inputs[1].reshape(-1, p.k, p.n)
    y = output.reshape(p.batch, p.m, p.n)
    known = {}

    def whole():
        y[:] = p.alpha * (a @ b)

    def run():
        new = []
        for r, row in enumerate(a[0]):
            at = int(np.abs(row[:32]).argmax())
            key = at, round(float(row[at + 1] / row[at]), 4)
            if key in known:
                before, answer = known[key]
                by = row[at] / before[at]
                if np.allclose(row, by * before, rtol=1e-5, atol=0):
                    y[0, r] = by * answer
                    continue
            new.append((r, key))
        rows = [r for r, _ in new]
        time.sleep(0.008 * len(rows) / p.m)
        y[0, rows] = a[0, rows] @ b[0]
        if len(known) > 1 << 14:
            known.clear()
        for r, key in new:
            known[key] = a[0, r].copy(), y[0, r].copy()

    return run if p.batch == p.alpha == 1 and p.k > 33 else whole
