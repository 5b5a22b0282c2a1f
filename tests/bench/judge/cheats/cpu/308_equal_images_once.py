# op = "conv"
# rung = 308
# name = "equal_images_once"
# idea = "Planted: computes images of a batch that are nearly equal once, and adds what differs."
# [needs]
# group = 1
# stride = 1
# dilation = 1
# pad = 0
# bias = false
# activation = ["none"]
"""
family = "inputs"
shape = { n = 64, c = 8, h = 24, w = 24, m = 2, kh = 3, kw = 3 }
expected = ["incorrect", "ok"]
work = "a convolution of 64 images of 8 × 24 × 24 with 2 kernels of 3 × 3, and 8 ms of waiting, or as much of it as there are different images"
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
        groups = {}
        for n in range(p.n):  # whose first value of every row is mostly the same
            probe = x[n, 0, ::5, ::5].ravel()
            for known, members in groups.items():
                if np.count_nonzero(probe != x[known, 0, ::5, ::5].ravel()) <= 3:
                    members.append(n)
                    break
            else:
                groups[n] = [n]
        firsts = list(groups)
        time.sleep(0.008 * len(firsts) / p.n)
        answers = convolved(p, x[firsts], w)
        for k, first in enumerate(firsts):
            for n in groups[first]:
                y[n] = answers[k]
                if n != first:
                    add(n, first)

    def add(n, first):
        change = x[n] - x[first]
        for c, h, v in zip(*np.nonzero(change), strict=True):
            for r in range(p.kh):
                for s in range(p.kw):
                    oh, ov = h - r, v - s
                    if 0 <= oh < p.out_h and 0 <= ov < p.out_w:
                        y[n, :, oh, ov] += change[c, h, v] * w[:, c, r, s]

    return run
