# op = "reduce"
# rung = 1
# name = "ufunc"
# idea = "One reduction of a ufunc along the axis; sums of short rows that lie together are left to BLAS."
# [needs]
# dtype = ["float32", "float64", "int32", "int64", "uint8", "int8", "bool"]
"""y = x reduced along its middle axis."""

import math
from functools import partial

import numpy as np

from kernels.cpu.common import PIECE, sequence, total, typed, typed_nbytes

PLAIN = {"max": np.maximum, "min": np.minimum, "prod": np.multiply}
PLACES = {"argmax": np.argmax, "argmin": np.argmin}
FIRST = {"l1", "l2", "sumsquare", "logsumexp"}  # a function of each element comes before the sum
SHORT = 1 << 14  # BLAS adds one after the other, a ufunc in pairs, which of long rows is the more exact
MANY = 1 << 10  # rows side by side, from which on a call for each element of the axis is worth it


def workspace(p):
    return typed_nbytes(sum(_room(p)), p.dtype) + (p.outputs + 3) // 4 * 4


def _room(p):
    """Elements of what lies between: functions of all elements, a number of each row, sums of pieces."""
    first = p.kind in FIRST and not _by_blas(p)
    pieces = -(-p.axis // PIECE) if p.inner > 1 else 0
    return math.prod(p.input_shapes[0]) if first else 0, p.outputs, pieces * p.outputs


def _by_blas(p):
    summed = p.kind in ("sum", "mean", "sumsquare", "l2")
    return summed and p.inner == 1 and p.axis <= SHORT and p.dtype in ("float32", "float64")


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(p.outer, p.axis, p.inner), output.reshape(p.outer, p.inner)
    room = typed(workspace, sum(_room(p)), p.dtype)
    made, top, sums = np.split(room, np.cumsum(_room(p)[:2]))
    if p.kind in PLACES:
        held = workspace[typed_nbytes(room.size, p.dtype) // 4 :]
        return _place(p, x, y, top.reshape(y.shape), typed(held, y.size, np.bool_).reshape(y.shape))
    sums = sums.reshape(p.outer, -1, p.inner)
    if p.inner == 1:  # two axes, which NumPy walks faster
        x, y = x.reshape(p.outer, p.axis), y.reshape(p.outer)
    if p.kind in ("max", "min", "prod"):
        return partial(PLAIN[p.kind].reduce, x, 1, y.dtype, y)
    calls = []
    if _by_blas(p):
        squared = p.kind in ("l2", "sumsquare")
        calls.append(partial(np.vecdot, x, x, y) if squared else partial(np.matmul, x, _ones(p), y))
    elif p.kind in FIRST:
        made, top = made.reshape(x.shape), top.reshape(y.shape)
        calls += [*_functions(p.kind, x, made, top), *total(made, y, sums)]
    else:
        calls += total(x, y, sums)
    if p.kind == "mean":
        calls.append(partial(np.divide, y, y.dtype.type(p.axis), y))
    elif p.kind == "l2":
        calls.append(partial(np.sqrt, y, y))
    elif p.kind in ("logsum", "logsumexp"):
        calls.append(partial(np.log, y, y))
    if p.kind == "logsumexp":
        calls.append(partial(np.add, y, top, y))
    return sequence(calls)


def _ones(p):
    return np.ones(p.axis, p.dtype)


def _functions(kind, x, made, top):
    """made: as large as x; top: the maximum of each row, taken out so that no exponential overflows."""
    if kind == "logsumexp":
        return [
            partial(np.maximum.reduce, x, 1, None, top),
            partial(_finite, top),
            partial(np.subtract, x, np.expand_dims(top, 1), made),
            partial(np.exp, made, made),
        ]
    return [partial(np.abs, x, made) if kind == "l1" else partial(np.multiply, x, x, made)]


def _finite(top):
    """∞ − ∞ is no number: an infinite maximum stays in."""
    np.copyto(top, 0, where=~np.isfinite(top))


def _place(p, x, y, top, held):
    """The first place of the extreme value; the last one is the first of the row turned round."""
    if p.inner > 1 and p.outputs >= MANY:
        return _places_side_by_side(p, x, y, top, held)
    if not p.last:
        return partial(PLACES[p.kind], x, 1, y)
    turned = x[:, ::-1]

    def run():
        PLACES[p.kind](turned, 1, y)
        np.subtract(p.axis - 1, y, y)

    return run


def _places_side_by_side(p, x, y, top, held):
    """The extreme value of every row first, then where it stands: the place that counts is written last."""
    extreme = np.maximum if p.kind == "argmax" else np.minimum
    calls = [partial(extreme.reduce, x, 1, None, top), partial(y.fill, 0)]
    for place in range(p.axis) if p.last else reversed(range(p.axis)):
        calls += [partial(np.equal, x[:, place], top, held), partial(np.copyto, y, place, where=held)]
    return sequence(calls)
