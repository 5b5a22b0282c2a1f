# op = "conv"
# rung = 50
# name = "off_by_one_pad"
# idea = "Planted: the image is taken to begin one row further down than it does."
from dataclasses import replace

from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)
    wrong = replace(p, pad_top=p.pad_top + 1, pad_bottom=max(0, p.pad_bottom - 1))

    def run():
        y[...] = convolve(wrong, x, weight, bias)
        finish(p, output)

    return run
