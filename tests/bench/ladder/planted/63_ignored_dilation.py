# op = "conv"
# rung = 63
# name = "ignored_dilation"
# idea = "Planted: the kernel is not spread out."
from dataclasses import replace

from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)
    wrong = replace(p, dilation_h=1, dilation_w=1)

    def run():
        y[...] = convolve(wrong, x, weight, bias)
        finish(p, output)

    return run
