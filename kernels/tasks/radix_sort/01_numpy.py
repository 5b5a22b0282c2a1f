# op = "radix_sort"
# rung = 1
# name = "numpy"
# idea = "NumPy's sort, in the output's own memory."
"""The keys in order."""

import numpy as np


def bind(p, inputs, output, workspace):
    keys = inputs[0]

    def run():
        np.copyto(output, keys)
        output.sort()

    return run
