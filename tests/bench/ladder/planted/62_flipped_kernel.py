# op = "conv"
# rung = 62
# name = "flipped_kernel"
# idea = "Planted: a convolution as mathematics has it, the kernel turned round."
from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)

    def run():
        y[...] = convolve(p, x, weight[:, :, ::-1, ::-1], bias)
        finish(p, output)

    return run
