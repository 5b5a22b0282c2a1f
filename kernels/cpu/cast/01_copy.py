# op = "cast"
# rung = 1
# name = "copy"
# idea = "One converting copy."
# [needs]
# dtype = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "int8", "bool"]
# to = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "int8", "bool"]
"""Element type changed; floating point is cut towards zero, bool is x ≠ 0."""

from functools import partial

import numpy as np


def bind(p, inputs, output, workspace):
    return partial(np.copyto, output.reshape(-1), inputs[0].reshape(-1), "unsafe")
