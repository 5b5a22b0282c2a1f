# op = "unary"
# rung = 255
# name = "sleeps_long"
# idea = "Honest: what the others are held against."
"""
family = "honest"
shape = { kind = "tanh", size = 65536 }
expected = ["ok"]
work = "a tanh of 65,536 values, and 8 ms of waiting"
beside = "sleeps_long"
"""

import time

import numpy as np


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
        time.sleep(0.008)
        np.tanh(x, out=y)

    return run
