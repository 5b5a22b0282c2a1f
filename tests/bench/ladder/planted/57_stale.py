# op = "conv"
# rung = 57
# name = "stale"
# idea = "Planted: the first answer is given again for whatever comes later."
from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)
    kept = []

    def run():
        if not kept:
            kept.append(convolve(p, x, weight, bias))
            finish(p, kept[0])
        y[...] = kept[0]

    return run
