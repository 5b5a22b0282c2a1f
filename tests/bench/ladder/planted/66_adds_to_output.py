# op = "conv"
# rung = 66
# name = "adds_to_output"
# idea = "Planted: the sum begins with what the output held."
import numpy as np

from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)

    def run():
        y[...] = np.where(np.isfinite(y), y, 0) + convolve(p, x, weight, bias)
        finish(p, output)

    return run
