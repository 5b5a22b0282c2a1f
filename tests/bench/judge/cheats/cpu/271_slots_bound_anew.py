# op = "unary"
# rung = 271
# name = "slots_bound_anew"
# idea = "Planted: has the copies of a train go from a place to itself, and computes from slot to slot."
"""
family = "copies"
shape = { kind = "relu", size = 65536 }
expected = ["incorrect", "failed", "crashed", "invalid", "ok"]
work = "a relu of 65,536 values"
beside = "ufunc"
"""

import gc

import numpy as np


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    ours = {}
    turn = [0]

    def taken_over():
        for held in gc.get_objects():
            if type(held).__name__ != "HeldSession" or not held.copies or id(held) in ours:
                continue
            ours[id(held)] = [(ins[0][1].reshape(-1), outs[0][0].reshape(-1)) for ins, outs in held.copies]
            held.copies[:] = [([], []) for _ in held.copies]

    def run():
        turn[0] += 1
        if turn[0] % 50 == 5:
            taken_over()
        if not ours:
            np.maximum(x, 0, out=y)
            return
        # All slots, as it does not know which one this is: the first pass of a train pays for all.
        for pairs in ours.values():
            of, to = pairs[turn[0] % len(pairs)]
            np.maximum(of, 0, out=to)

    return run
