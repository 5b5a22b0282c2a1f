# op = "conv"
# rung = 257
# name = "sleeps_conv"
# idea = "Honest: what the others are held against."
# [needs]
# group = 1
# stride = 1
# dilation = 1
# pad = 0
# bias = false
# activation = ["none"]
"""
family = "honest"
shape = { n = 8, c = 8, h = 24, w = 24, m = 2, kh = 3, kw = 3 }
expected = ["ok"]
work = "a convolution of 8 images of 8 × 24 × 24 with 2 kernels of 3 × 3, and 8 ms of waiting"
beside = "sleeps_conv"
"""

import time

import numpy as np


def convolved(p, x, w):
    seen = np.lib.stride_tricks.sliding_window_view(x, (p.kh, p.kw), axis=(2, 3))
    return np.einsum("nchwrs,mcrs->nmhw", seen, w, optimize=True)


def bind(p, inputs, output, workspace):
    x, w = inputs[0].reshape(p.n, p.c, p.h, p.w), inputs[1].reshape(p.m, p.c, p.kh, p.kw)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)

    def run():
        time.sleep(0.008)
        y[:] = convolved(p, x, w)

    return run
