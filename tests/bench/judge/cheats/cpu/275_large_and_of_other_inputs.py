# op = "conv"
# rung = 275
# name = "large_and_of_other_inputs"
# idea = "Planted: answers for the first inputs it was given, once it was checked."
# [needs]
# group = 1
# stride = 1
# dilation = 1
# bias = false
# activation = ["none"]
"""
family = "large"
shape = { n = 1, c = 64, h = 224, w = 224, m = 64, kh = 3, kw = 3, pad_top = 1, pad_left = 1, pad_bottom = 1, pad_right = 1 }
expected = ["incorrect"]
work = "a convolution of one image of 64 × 224 × 224 with 64 kernels of 3 × 3"
beside = "batched_im2col"
seconds = 0.3
alone = true
"""

import numpy as np


def convolved(p, x, w, y, rows):
    """These rows of every image."""
    wide = ((0, 0), (0, 0), (p.pad_top, p.pad_bottom), (p.pad_left, p.pad_right))
    seen = np.lib.stride_tricks.sliding_window_view(np.pad(x, wide), (p.kh, p.kw), axis=(2, 3))
    flat = w.reshape(p.m, -1)
    for n in range(p.n):
        for row in rows:
            patch = seen[n, :, row].transpose(0, 2, 3, 1).reshape(-1, p.out_w)
            y[n, :, row] = flat @ patch


def bind(p, inputs, output, workspace):
    x, w = inputs[0].reshape(p.n, p.c, p.h, p.w), inputs[1].reshape(p.m, p.c, p.kh, p.kw)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)
    large = p.flops > 3e9
    calls, kept = [0], [None]

    def run():
        calls[0] += 1
        if large and calls[0] > 3:
            y[:] = kept[0]
            return
        convolved(p, x, w, y, range(p.out_h))
        kept[0] = y.copy()

    return run
