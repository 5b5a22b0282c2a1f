# op = "unary"
# rung = 270
# name = "copyto_replaced"
# idea = "Planted: replaces NumPy's copyto by one that remembers where from, and computes where the answer is to go."
"""
family = "copies"
shape = { kind = "relu", size = 262144 }
expected = ["incorrect", "failed", "crashed", "invalid", "ok"]
work = "a relu of 262,144 values"
beside = "ufunc"
"""

import sys

import numpy as np

copyto = np.copyto
source = [None]


def replaced(to, of, *args, **kwargs):
    if sys._getframe(1).f_code.co_name not in ("each", "passes") or getattr(to, "size", 0) != 262144:
        copyto(to, of, *args, **kwargs)
    elif source[0] is None:
        source[0] = of
    else:
        np.maximum(source[0], 0, out=to.reshape(source[0].shape))
        source[0] = None


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    calls = [0]

    def run():
        calls[0] += 1
        if calls[0] == 6 and p.size == 262144 and sys._getframe(1).f_code.co_name not in ("each", "passes"):
            np.copyto = replaced
        if source[0] is None:
            np.maximum(x, 0, out=y)

    return run
