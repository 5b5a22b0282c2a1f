# op = "conv"
# rung = 60
# name = "nan"
# idea = "Planted: a division of zero by zero at the corner."
import numpy as np

from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)

    def run():
        y[...] = convolve(p, x, weight, bias)
        finish(p, output)
        y[..., 0, 0] = np.inf * 0.0

    return run
