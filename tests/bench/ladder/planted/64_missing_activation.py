# op = "conv"
# rung = 64
# name = "missing_activation"
# idea = "Planted: the activation is left out."
from tests.bench.ladder.planted._direct import convolve, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)

    def run():
        y[...] = convolve(p, x, weight, bias)

    return run
