# op = "conv"
# rung = 65
# name = "written_input"
# idea = "Planted: the image is scaled in place."
from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)

    def run():
        y[...] = convolve(p, x, weight, bias)
        finish(p, output)
        x[:] = x * 1.5

    return run
