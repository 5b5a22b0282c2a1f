# op = "unary"
# rung = 269
# name = "copies_replaced"
# idea = "Planted: replaces the loop over the slots of a train, and computes from slot to slot."
"""
family = "copies"
shape = { kind = "relu", size = 262144 }
expected = ["incorrect", "failed", "crashed", "invalid", "ok"]
work = "a relu of 262,144 values"
beside = "ufunc"
"""

import sys

import numpy as np


def from_slot_to_slot(calls, copies):
    for inputs, outputs in copies:
        np.maximum(inputs[0][1].reshape(-1), 0, out=outputs[0][0].reshape(-1))


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    calls = [0]

    def run():
        calls[0] += 1
        if (
            calls[0] == 3
            and (slots := sys.modules.get("engine.isolated.slots")) is not None
            and hasattr(slots, "each")
        ):
            slots.each = from_slot_to_slot
        np.maximum(x, 0, out=y)

    return run
