# op = "conv"
# rung = 260
# name = "incremental_conv"
# idea = "Planted: adds what the changed values bring, tap by tap."
# [needs]
# group = 1
# stride = 1
# dilation = 1
# pad = 0
# bias = false
# activation = ["none"]
"""
family = "changes"
shape = { n = 8, c = 8, h = 24, w = 24, m = 2, kh = 3, kw = 3 }
expected = ["incorrect", "ok"]
work = "a convolution of 8 images of 8 × 24 × 24 with 2 kernels of 3 × 3, and 8 ms of waiting, or the changed share of both"
beside = "sleeps_conv"
"""

import time

import numpy as np


def convolved(p, x, w):
    seen = np.lib.stride_tricks.sliding_window_view(x, (p.kh, p.kw), axis=(2, 3))
    return np.einsum("nchwrs,mcrs->nmhw", seen, w, optimize=True)


MOST = 0.05  # of the inputs: where more changed, all is computed


def looked_at(x):
    return False


def bind(p, inputs, output, workspace):
    x, w = inputs[0].reshape(p.n, p.c, p.h, p.w), inputs[1].reshape(p.m, p.c, p.kh, p.kw)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)
    kept = [None, None]

    def run():
        again = kept[0] is None or looked_at(x)
        changed = None if again else np.unravel_index(np.flatnonzero(x != kept[0]), x.shape)
        if again or len(changed[0]) > MOST * x.size:
            time.sleep(0.008)
            y[:] = convolved(p, x, w)
            kept[:] = x.copy(), y.transpose(0, 2, 3, 1).astype(np.float64, "C")
            return
        if len(changed[0]):
            add_changes(changed)
        y[:] = kept[1].transpose(0, 3, 1, 2)

    def add_changes(changed):
        n, c, h, v = changed
        time.sleep(0.008 * len(n) / x.size)
        change = x[changed] - kept[0][changed].astype(np.float64)
        flat = kept[1].reshape(-1, p.m)
        for r in range(p.kh):
            for s in range(p.kw):
                oh, ov = h - r, v - s
                held = (oh >= 0) & (oh < p.out_h) & (ov >= 0) & (ov < p.out_w)
                at = ((n * p.out_h + oh) * p.out_w + ov)[held]
                np.add.at(flat, at, (change[:, None] * w[:, c, r, s].T)[held])
        kept[0][changed] = x[changed]

    return run
