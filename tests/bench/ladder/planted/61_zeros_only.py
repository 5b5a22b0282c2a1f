# op = "conv"
# rung = 61
# name = "zeros_only"
# idea = "Planted: what the image holds is never read."
from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)

    def run():
        y[...] = convolve(p, 0 * x, weight, bias)
        finish(p, output)

    return run
