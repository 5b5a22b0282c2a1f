# op = "conv"
# rung = 310
# name = "first_and_last_image"
# idea = "Planted: computes the first and the last image of a batch once it is warm."
# [needs]
# group = 1
# stride = 1
# dilation = 1
# pad = 0
# bias = false
# activation = ["none"]
"""
family = "partial"
shape = { n = 16, c = 8, h = 24, w = 24, m = 2, kh = 3, kw = 3 }
expected = ["incorrect"]
work = "a convolution of 16 images of 8 × 24 × 24 with 2 kernels of 3 × 3"
beside = "batched_im2col"
"""

import numpy as np


def convolved(p, x, w):
    seen = np.lib.stride_tricks.sliding_window_view(x, (p.kh, p.kw), axis=(2, 3))
    return np.einsum("nchwrs,mcrs->nmhw", seen, w, optimize=True)


def bind(p, inputs, output, workspace):
    x, w = inputs[0].reshape(p.n, p.c, p.h, p.w), inputs[1].reshape(p.m, p.c, p.kh, p.kw)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)
    calls = [0]

    def run():
        calls[0] += 1
        images = [0, p.n - 1] if calls[0] > 8 and p.n > 2 else list(range(p.n))
        y[images] = convolved(p, x[images], w)

    return run
