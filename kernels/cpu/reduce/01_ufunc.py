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

from kernels.cpu.common import sequence, typed, typed_nbytes

PLAIN = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
PLACES = {"argmax": np.argmax, "argmin": np.argmin}
FIRST = {"l1", "l2", "sumsquare", "logsumexp"}  # a function of each element comes before the sum
SHORT = 1 << 14  # BLAS adds one after the other, a ufunc in pairs, which of long rows is the more exact
MANY = 1 << 10  # rows side by side, from which on a call for each element of the axis is worth it


def workspace(p):
    return typed_nbytes(_room(p), p.dtype) + (p.outputs + 3) // 4 * 4


def _room(p):
    """Elements and, where rows have a maximum to be remembered, that of each."""
    if p.kind in FIRST and not _by_blas(p):
        return math.prod(p.input_shapes[0]) + p.outputs
    return p.outputs


def _by_blas(p):
    summed = p.kind in ("sum", "mean", "sumsquare", "l2")
    return summed and p.inner == 1 and p.axis <= SHORT and p.dtype in ("float32", "float64")


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(p.outer, p.axis, p.inner), output.reshape(p.outer, p.inner)
    if p.kind in PLACES:
        return _place(p, x, y, workspace)
    if p.inner == 1:  # two axes, which NumPy walks faster
        x, y = x.reshape(p.outer, p.axis), y.reshape(p.outer)
    after = [partial(np.sqrt, y, y)] if p.kind == "l2" else []
    if _by_blas(p):
        if p.kind in ("l2", "sumsquare"):
            return sequence([partial(np.vecdot, x, x, y), *after])
        calls = [partial(np.matmul, x, np.ones(p.axis, x.dtype), y)]
        return sequence([*calls, *_divided(p, y)])
    if p.kind in FIRST:
        room = typed(workspace, _room(p), p.dtype)
        made, top = room[: x.size].reshape(x.shape), room[x.size :].reshape(y.shape)
        return sequence([*_of_functions(p.kind, x, y, made, top), *after])
    calls = [partial(PLAIN.get(p.kind, np.add).reduce, x, 1, y.dtype, y)]
    if p.kind == "logsum":
        calls.append(partial(np.log, y, y))
    return sequence([*calls, *_divided(p, y)])


def _divided(p, y):
    return [partial(np.divide, y, y.dtype.type(p.axis), y)] if p.kind == "mean" else []


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
    return [partial(np.abs, x, made) if kind == "l1" else partial(np.multiply, x, x, made), total]


def _finite(top):
    """∞ − ∞ is no number: an infinite maximum stays in."""
    np.copyto(top, 0, where=~np.isfinite(top))


def _place(p, x, y, workspace):
    """The first place of the extreme value; the last one is the first of the row turned round."""
    if p.inner > 1 and p.outputs >= MANY:
        return _places_side_by_side(p, x, y, workspace)
    if not p.last:
        return partial(PLACES[p.kind], x, 1, y)
    turned = x[:, ::-1]

    def run():
        PLACES[p.kind](turned, 1, y)
        np.subtract(p.axis - 1, y, y)

    return run


def _places_side_by_side(p, x, y, workspace):
    """The extreme value of every row first, then where it stands: the place that counts is written last."""
    top = typed(workspace, p.outputs, p.dtype).reshape(y.shape)
    begin = typed_nbytes(_room(p), p.dtype) // 4
    held = typed(workspace[begin:], p.outputs, np.bool_).reshape(y.shape)
    extreme = np.maximum if p.kind == "argmax" else np.minimum
    calls = [partial(extreme.reduce, x, 1, None, top), partial(y.fill, 0)]
    for place in range(p.axis) if p.last else reversed(range(p.axis)):
        calls += [partial(np.equal, x[:, place], top, held), partial(np.copyto, y, place, where=held)]
    return sequence(calls)
