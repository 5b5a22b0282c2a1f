# op = "conv"
# rung = 56
# name = "unwritten_edge"
# idea = "Planted: the last column is left as it was."
from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)

    def run():
        right = convolve(p, x, weight, bias)
        finish(p, right)
        y[..., :-1] = right[..., :-1]

    return run
