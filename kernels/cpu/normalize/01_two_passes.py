# op = "normalize"
# rung = 1
# name = "two_passes"
# idea = "First the mean of each row, then the mean square of the differences from it: nothing cancels."
# [needs]
# dtype = ["float32", "float64"]
"""y = (x − mean) / √(variance + epsilon) · scale + bias, row by row."""

from functools import partial

import numpy as np

from kernels.cpu.common import sequence, typed, typed_nbytes


def workspace(p):
    return typed_nbytes(_room(p), p.dtype)


def _room(p):
    """Mean and factor of each row, and a square of each element."""
    return p.count * (2 + p.length)


def bind(p, inputs, output, workspace):
    x = inputs[0].reshape(p.count, p.length)
    room = typed(workspace, _room(p), p.dtype)
    mean, factor = room[: p.count].reshape(-1, 1), room[p.count : 2 * p.count].reshape(-1, 1)
    squares = room[2 * p.count :].reshape(x.shape)
    whole = p.gives == "all"
    moved = output.reshape(x.shape) if whole else squares
    scalar = x.dtype.type
    calls = []
    if p.centred:
        calls += [
            partial(np.add.reduce, x, 1, None, mean, True),
            partial(np.divide, mean, scalar(p.length), mean),
            partial(np.subtract, x, mean, moved),
        ]
    else:
        calls += [partial(mean.fill, scalar(0)), partial(np.copyto, moved, x)]
    calls += [
        partial(np.multiply, moved, moved, squares),
        partial(np.add.reduce, squares, 1, None, factor, True),
        partial(np.divide, factor, scalar(p.length), factor),
        partial(np.add, factor, scalar(p.epsilon), factor),
        partial(np.sqrt, factor, factor),
        partial(np.reciprocal, factor, factor),
    ]
    if not whole:
        of = mean if p.gives == "mean" else factor
        return sequence([*calls, partial(np.copyto, output.reshape(of.shape), of)])
    calls.append(partial(np.multiply, moved, factor, moved))
    if p.affine:
        # Rows that take turns, channels of a row, elements of a channel.
        parts = (-1, p.groups, p.length // p.inner, p.inner)
        scale, bias = (array.reshape(1, *parts[1:3], 1) for array in inputs[1:3])
        y = moved.reshape(parts)
        calls += [partial(np.multiply, y, scale, y), partial(np.add, y, bias, y)]
    return sequence(calls)
