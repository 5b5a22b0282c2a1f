# op = "conv"
# rung = 51
# name = "swapped_stride"
# idea = "Planted: the strides along height and width change places."
from dataclasses import replace

from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)
    wrong = replace(p, stride_h=p.stride_w, stride_w=p.stride_h)

    def run():
        y[...] = convolve(wrong, x, weight, bias)
        finish(p, output)

    return run
