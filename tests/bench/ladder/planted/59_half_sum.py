# op = "conv"
# rung = 59
# name = "half_sum"
# idea = "Planted: products are summed in half precision."
import numpy as np

from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)

    def run():
        y[...] = convolve(p, x.astype(np.float16), weight, bias, np.float16)
        finish(p, output)

    return run
