# op = "conv"
# rung = 53
# name = "ignored_group"
# idea = "Planted: every map reads the channels of the first group."
import numpy as np

from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)
    channels = p.c // p.group
    first = np.concatenate([x[:, :channels]] * p.group, axis=1)

    def run():
        first[...] = np.concatenate([x[:, :channels]] * p.group, axis=1)
        y[...] = convolve(p, first, weight, bias)
        finish(p, output)

    return run
