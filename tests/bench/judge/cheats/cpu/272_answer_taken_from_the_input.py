# op = "unary"
# rung = 272
# name = "answer_taken_from_the_input"
# idea = "Planted: has the copy out of a train take its input, so that nothing is left to do."
"""
family = "copies"
shape = { kind = "identity", size = 262144 }
expected = ["incorrect", "failed", "crashed", "invalid", "ok"]
work = "a copy of 262,144 values"
beside = "ufunc"
"""

import gc
import sys

import numpy as np


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    calls, done = [0], [False]

    def rebound():
        for held in gc.get_objects():
            if type(held).__name__ == "HeldSession" and held.copies:
                held.copies[:] = [
                    (ins, [(outs[0][0], inputs[0].reshape(outs[0][0].shape))]) for ins, outs in held.copies
                ]
                done[0] = True

    def run():
        calls[0] += 1
        if calls[0] == 8 and p.size == 262144:
            rebound()
        if not done[0] or sys._getframe(1).f_code.co_name not in ("each", "passes"):
            np.copyto(y, x)

    return run
