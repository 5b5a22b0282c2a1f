# op = "reduction"
# rung = 1
# name = "numpy"
# idea = "NumPy's sum, which adds in pairs of pairs and so loses few digits."
"""sum = Σ x."""

from functools import partial

import numpy as np


def bind(p, inputs, output, workspace):
    return partial(np.add.reduce, inputs[0], 0, None, output, True)
