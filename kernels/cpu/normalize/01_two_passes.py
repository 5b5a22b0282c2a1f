# op = "normalize"
# rung = 1
# name = "two_passes"
# idea = "First the mean of each row, then the mean square of the differences from it: nothing cancels."
# [needs]
# dtype = ["float32", "float64"]
"""y = (x − mean) / √(variance + epsilon) · scale + bias, some rows after the others, so that these stay in a
cache."""

from functools import partial

import numpy as np

from kernels.cpu.common import sequence, typed, typed_nbytes

BLOCK = 1 << 16  # elements that a core's own cache holds, with what becomes of them
PAIR = 1 << 12  # elements that are multiplied and added up at once, one after the other
# A mean that is so many times the spread is rounded by too much for what is left when it is taken off.
LARGE = 32.0


def workspace(p):
    return typed_nbytes(_room(p), p.dtype)


def _room(p):
    """Mean and factor of each row, sums of the pieces of one, and the differences where y has no room."""
    pieces = -(-p.length // PAIR)
    return p.count * (2 + pieces) + (p.count * p.length if p.gives != "all" else 0)


def bind(p, inputs, output, workspace):
    x = inputs[0].reshape(p.count, p.length)
    room = typed(workspace, _room(p), p.dtype)
    mean, factor = room[: p.count].reshape(-1, 1), room[p.count : 2 * p.count].reshape(-1, 1)
    pieces = -(-p.length // PAIR)
    sums = room[2 * p.count : (2 + pieces) * p.count].reshape(p.count, pieces)
    whole = p.gives == "all"
    moved = output.reshape(x.shape) if whole else room[(2 + pieces) * p.count :].reshape(x.shape)
    # Rows that take turns in the channels stay together.
    rows = max(1, BLOCK // (p.length * p.groups)) * p.groups
    calls = []
    for first in range(0, p.count, rows):
        part = slice(first, first + rows)
        calls += _statistics(p, x[part], moved[part], mean[part], factor[part], sums[part])
        if whole:
            calls += _scaled(p, moved[part], factor[part], inputs[1:])
    if not whole:
        calls.append(partial(np.copyto, output.reshape(mean.shape), mean if p.gives == "mean" else factor))
    return sequence(calls)


def _statistics(p, x, moved, mean, factor, sums):
    scalar = x.dtype.type
    calls = [partial(mean.fill, scalar(0)), partial(np.copyto, moved, x)]
    if p.centred:
        total = partial(np.add.reduce, x, 1, None, mean, True)
        if p.length <= PAIR:  # BLAS is faster, and as exact while there are few
            total = partial(np.matmul, x, np.ones(p.length, x.dtype), mean[:, 0])
        calls = [
            total,
            partial(np.divide, mean, scalar(p.length), mean),
            partial(np.subtract, x, mean, moved),
        ]
    for piece in range(sums.shape[1]):
        some = moved[:, piece * PAIR : (piece + 1) * PAIR]
        calls.append(partial(np.vecdot, some, some, sums[:, piece]))
    return [
        *calls,
        partial(np.add.reduce, sums, 1, None, factor, True),
        partial(np.divide, factor, scalar(p.length), factor),
        partial(np.add, factor, scalar(p.epsilon), factor),
        partial(np.sqrt, factor, factor),
        partial(np.reciprocal, factor, factor),
        *([partial(_corrected, moved, mean, factor, scalar(p.epsilon))] if p.centred else ()),
    ]


def _corrected(moved, mean, factor, epsilon):
    """Take off what is left of the mean, where that of a row is large beside the spread."""
    in_spreads = mean * factor
    if np.vdot(in_spreads, in_spreads) > LARGE * LARGE:
        left = np.add.reduce(moved, axis=1, keepdims=True) / moved.shape[1]
        np.subtract(moved, left, moved)
        np.add(mean, left, mean)
        squares = np.vecdot(moved, moved).reshape(factor.shape) / moved.shape[1]
        np.divide(1, np.sqrt(squares + epsilon), factor)


def _scaled(p, y, factor, affine):
    calls = [partial(np.multiply, y, factor, y)]
    if p.affine:
        # Rows that take turns, channels of a row, elements of a channel.
        scale, bias = (array.reshape(1, p.groups, -1, 1) for array in affine)
        y = y.reshape(-1, p.groups, p.length // p.inner, p.inner)
        if p.inner == 1:
            y, scale, bias = y[..., 0], scale[..., 0], bias[..., 0]
        calls += [partial(np.multiply, y, scale, y), partial(np.add, y, bias, y)]
    return calls
