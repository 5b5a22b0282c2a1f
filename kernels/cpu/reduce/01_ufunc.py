# op = "reduce"
# rung = 1
# name = "ufunc"
# idea = "One reduction of a ufunc along the axis; what is squared or raised first is kept in between."
# [needs]
# dtype = ["float32", "float64", "int32", "int64", "uint8", "int8", "bool"]
"""y = x reduced along its middle axis."""

import math
from functools import partial

import numpy as np

from kernels.cpu.common import sequence, typed, typed_nbytes

PLAIN = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
PLACES = {"argmax": np.argmax, "argmin": np.argmin}
FIRST = {"l1", "l2", "sumsquare", "logsumexp"}  # a function of each element comes before the sum


def workspace(p):
    return typed_nbytes(_room(p), p.dtype)


def _room(p):
    """Elements and, for logsumexp, the maximum of each row."""
    return math.prod(p.input_shapes[0]) + p.outputs if p.kind in FIRST else 0


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(p.outer, p.axis, p.inner), output.reshape(p.outer, p.inner)
    if p.kind in PLACES:
        return _place(p, x, y)
    if p.inner == 1:  # two axes, which NumPy walks faster
        x, y = x.reshape(p.outer, p.axis), y.reshape(p.outer)
    if p.kind in FIRST:
        room = typed(workspace, _room(p), p.dtype)
        made, top = room[: x.size].reshape(x.shape), room[x.size :].reshape(y.shape)
        return sequence(_of_functions(p.kind, x, y, made, top))
    calls = [partial(PLAIN.get(p.kind, np.add).reduce, x, 1, y.dtype, y)]
    if p.kind == "mean":
        calls.append(partial(np.divide, y, y.dtype.type(p.axis), y))
    if p.kind == "logsum":
        calls.append(partial(np.log, y, y))
    return sequence(calls)


def _of_functions(kind, x, y, made, top):
    """made: as large as x; top: the maximum of each row, taken out so that no exponential overflows."""
    total = partial(np.add.reduce, made, 1, y.dtype, y)
    if kind == "logsumexp":
        return [
            partial(np.maximum.reduce, x, 1, None, top),
            partial(_finite, top),
            partial(np.subtract, x, np.expand_dims(top, 1), made),
            partial(np.exp, made, made),
            total,
            partial(np.log, y, y),
            partial(np.add, y, top, y),
        ]
    first = partial(np.abs, x, made) if kind == "l1" else partial(np.multiply, x, x, made)
    return [first, total, *([partial(np.sqrt, y, y)] if kind == "l2" else [])]


def _finite(top):
    """∞ − ∞ is no number: an infinite maximum stays in."""
    np.copyto(top, 0, where=~np.isfinite(top))


def _place(p, x, y):
    """The first place of the extreme value; the last one is the first of the row turned round."""
    if not p.last:
        return partial(PLACES[p.kind], x, 1, y)
    turned = x[:, ::-1]

    def run():
        PLACES[p.kind](turned, 1, y)
        np.subtract(p.axis - 1, y, y)

    return run
