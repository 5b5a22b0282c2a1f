# op = "matrix_transpose"
# rung = 1
# name = "numpy"
# idea = "NumPy's copy of a view of the other strides: it reads side by side, and writes far apart."
"""y = xᵀ."""

from functools import partial

import numpy as np


def bind(p, inputs, output, workspace):
    return partial(np.copyto, output.reshape(p.n, p.m), inputs[0].reshape(p.m, p.n).T)
