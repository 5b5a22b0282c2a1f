# op = "vector_add"
# rung = 1
# name = "numpy"
# idea = "NumPy's addition, written straight into the output: no array is made."
"""c = a + b."""

from functools import partial

import numpy as np


def bind(p, inputs, output, workspace):
    a, b = inputs
    return partial(np.add, a, b, output)
