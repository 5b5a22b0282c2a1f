# op = "scan"
# rung = 1
# name = "numpy"
# idea = "NumPy's running sum in float64, so that it loses no digits, rounded at the end."
"""y[i] = Σ x[0 … i]."""

import numpy as np


def bind(p, inputs, output, workspace):
    x = inputs[0]
    sums = np.empty(p.n, np.float64)

    def run():
        np.add.accumulate(x, 0, np.float64, sums)
        np.copyto(output, sums, casting="same_kind")

    return run
