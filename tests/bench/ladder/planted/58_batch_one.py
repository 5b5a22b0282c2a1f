# op = "conv"
# rung = 58
# name = "batch_one"
# idea = "Planted: all images get the first one's answer."
from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)

    def run():
        y[...] = convolve(p, x, weight, bias)[:1]
        finish(p, output)

    return run
