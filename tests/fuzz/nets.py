"""A model of the operators that work on shapes, to be changed."""

from __future__ import annotations

import numpy as np
from onnx import helper

SHAPED = [
    helper.make_node("Shape", ["x"], ["s"], "shape"),
    helper.make_node("Gather", ["s", "i"], ["n"], "gather"),
    helper.make_node("Concat", ["n", "m"], ["c1"], "concat", axis=0),
    helper.make_node("Reshape", ["x", "c1"], ["r"], "reshape"),
    helper.make_node("Unsqueeze", ["r", "i"], ["u"], "unsqueeze"),
    helper.make_node("Pad", ["u", "p"], ["d"], "pad"),
    helper.make_node("Transpose", ["d"], ["t"], "transpose", perm=[1, 0, 2]),
    helper.make_node("ReduceMax", ["t"], ["y"], "refused", keepdims=1),
]
SMALL_CONSTANTS = {"i": np.array([0]), "m": np.array([-1]), "p": np.array([0, 0, 1, 0, 0, 1])}
