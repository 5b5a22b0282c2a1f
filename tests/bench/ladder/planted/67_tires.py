# op = "conv"
# rung = 67
# name = "tires"
# idea = "Planted: right for the first passes, and later wrong in the first image."
from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)
    passes = [0]

    def run():
        passes[0] += 1
        y[...] = convolve(p, x, weight, bias)
        if passes[0] > 200:
            y[0] = 0
        finish(p, output)

    return run
