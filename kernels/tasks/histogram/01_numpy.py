# op = "histogram"
# rung = 1
# name = "numpy"
# idea = "NumPy's bincount, which counts in one pass."
"""counts[b] = how often b occurs."""

import numpy as np


def bind(p, inputs, output, workspace):
    values = inputs[0]

    def run():
        np.copyto(output, np.bincount(values, minlength=p.bins), casting="same_kind")

    return run
