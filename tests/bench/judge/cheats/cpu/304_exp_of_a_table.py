# op = "unary"
# rung = 304
# name = "exp_of_a_table"
# idea = "Planted: takes an exponential from a table of 4,096 values, by straight lines in between."
"""
family = "precision"
shape = { kind = "sigmoid", size = 65536 }
expected = ["incorrect"]
work = "a sigmoid of 65,536 values in float32"
beside = "ufunc"
"""

import numpy as np

EDGE, STEPS = 20.0, 4096
places = np.linspace(-EDGE, EDGE, STEPS + 1)
table = (1 / (1 + np.exp(-places))).astype(np.float32)
slope = np.diff(table)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
        at = np.clip((x + EDGE) * (STEPS / (2 * EDGE)), 0, STEPS - 1e-3)
        low = np.nan_to_num(at).astype(np.int32)
        y[:] = table[low] + slope[low] * (at - low)

    return run
