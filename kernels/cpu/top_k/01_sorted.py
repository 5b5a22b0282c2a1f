# op = "top_k"
# rung = 1
# name = "sorted"
# idea = "Sorts the places of each row by their values, equal ones as they are, and takes the first k."
# [needs]
# dtype = ["float32", "float64", "int32", "int64", "uint8", "int8"]
"""y = the places of the k largest or smallest along the axis; NaN is larger than all others, as NumPy sorts
it."""

import numpy as np


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(p.outer, p.axis, p.inner), output.reshape(p.outer, p.k, p.inner)

    def run():
        if p.largest:  # sorted from the end: of equal ones the first comes last, and first when turned round
            order = np.argsort(x[:, ::-1], axis=1, kind="stable")
            np.subtract(p.axis - 1, order[:, : -p.k - 1 : -1], y)
        else:
            np.copyto(y, np.argsort(x, axis=1, kind="stable")[:, : p.k])

    return run
