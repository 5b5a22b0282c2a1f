# op = "conv"
# rung = 55
# name = "stray_write"
# idea = "Planted: one element behind the output is written."
from numpy.lib.stride_tricks import as_strided

from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)
    beyond = as_strided(y.reshape(-1), (y.size + 1,), (4,))

    def run():
        y[...] = convolve(p, x, weight, bias)
        finish(p, output)
        beyond[-1] = 1.0

    return run
