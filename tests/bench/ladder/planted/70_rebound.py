# op = "conv"
# rung = 70
# name = "rebound"
# idea = "Planted: the answer is a new array that takes the output's name."
from tests.bench.ladder.planted._direct import convolve, finish, shaped


def bind(p, inputs, output, workspace):
    x, weight, bias = shaped(p, inputs)

    def run():
        output = convolve(p, x, weight, bias)
        finish(p, output)

    return run
