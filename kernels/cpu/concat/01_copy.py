# op = "concat"
# rung = 1
# name = "copy"
# idea = "One NumPy call copies the rows of one input after the other to their places."
# [needs]
# dtype = ["float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool"]
"""Rows side by side."""

from functools import partial

import numpy as np


def bind(p, inputs, output, workspace):
    parts = [x.reshape(p.outer, width) for x, width in zip(inputs, p.widths, strict=True)]
    return partial(np.concatenate, parts, axis=1, out=output.reshape(p.outer, p.row))
