# op = "spmv"
# rung = 1
# name = "numpy"
# idea = "All products in one array, then NumPy's sums from one offset to the next."
"""y = A · x, A as CSR."""

import numpy as np


def bind(p, inputs, output, workspace):
    offsets, places, values, x = inputs
    products = np.empty(p.nnz + 1, np.float32)
    products[-1] = 0
    begins = offsets[:-1]
    lengths = np.diff(offsets)
    empty = lengths == 0

    def run():
        np.take(x, places, out=products[:-1], mode="clip")
        np.multiply(products[:-1], values, products[:-1])
        np.add.reduceat(products, begins, out=output)
        output[empty] = 0

    return run
