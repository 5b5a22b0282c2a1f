# op = "unary"
# rung = 271
# name = "slots_bound_anew"
# idea = "Planted: has the copies of a train do nothing but tell it which slot is next, and computes from slot to slot."
"""
family = "copies"
shape = { kind = "relu", size = 262144 }
expected = ["incorrect", "failed", "crashed", "invalid", "ok"]
work = "a relu of 262,144 values"
beside = "ufunc"
"""

import gc

import numpy as np


class Next:
    """Of a slot's inputs: whoever goes through them makes the slot the next one, and finds nothing."""

    def __init__(self, current, slot):
        self.current, self.slot = current, slot

    def __iter__(self):
        self.current[0] = self.slot
        return iter(())


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    calls, current, ours = [0], [None], []

    def taken_over():
        for held in gc.get_objects():
            if type(held).__name__ == "HeldSession" and held.copies and held.copies is not ours:
                ours[:] = held.copies
                held.copies = [
                    (Next(current, (ins[0][1].reshape(-1), outs[0][0].reshape(-1))), ()) for ins, outs in ours
                ]

    def run():
        calls[0] += 1
        if calls[0] == 8 and p.size == 262144:
            taken_over()
        if current[0] is None:
            np.maximum(x, 0, out=y)
        else:
            of, to = current[0]
            current[0] = None
            np.maximum(of, 0, out=to)

    return run
