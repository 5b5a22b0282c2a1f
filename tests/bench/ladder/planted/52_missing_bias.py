# op = "conv"
# rung = 52
# name = "missing_bias"
# idea = "Planted: the bias is left out."
from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, _ = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)

    def run():
        y[...] = convolve(p, x, weight, None)
        finish(p, output)

    return run
