# op = "attention"
# rung = 1
# name = "whole_scores"
# idea = "Both products by BLAS, head by head, the scores of all queries and keys written out in between."
# [needs]
# packed = false
# dtype = ["float32", "float64"]
"""y = softmax(cap(scale · q kᵀ) + mask) · v: scores, their softmax in place, and what they weigh."""

from functools import partial

import numpy as np
from numpy.lib.stride_tricks import as_strided

from kernels.cpu.common import product, room_elements, sequence, typed, typed_nbytes


def _sizes(p):
    """Scores of a head, of each query the largest, then their sum, and what the second product takes."""
    return p.queries * p.keys, p.queries, room_elements(p.keys, p.queries, p.depth_v)


def workspace(p):
    return typed_nbytes(sum(_sizes(p)), p.dtype)


def bind(p, inputs, output, workspace):
    q, k, v = (_heads(*given) for given in zip(inputs[:3], p.input_shapes, p.swapped, strict=False))
    y = _heads(output, p.output_shape, p.swapped[3])
    room = typed(workspace, sum(_sizes(p)), p.dtype)
    ends = np.cumsum(_sizes(p))
    scores = room[: ends[0]].reshape(p.queries, p.keys)
    row = room[ends[0] : ends[1]].reshape(p.queries, 1)
    unseen = _unseen(p)
    mask = _mask(p, inputs[3]) if p.mask else None
    shared = p.heads // p.kv_heads
    calls = []
    for image in range(p.batch):
        for head in range(p.heads):
            of = image, head // shared
            calls += _scores(p, q[image, head], k[of], scores)
            if mask is not None:
                calls.append(partial(np.add, scores, mask[image, head], scores))
            if unseen is not None:
                calls.append(partial(np.add, scores, unseen, scores))
            calls += _weights(p, scores, row)
            calls += product(scores, v[of], y[image, head], room[ends[1] :])
    return sequence(calls)


def _heads(array, shape, swapped):
    """A view (batch, heads, rows, elements)."""
    array = array.reshape(shape)
    return array.swapaxes(1, 2) if swapped else array


def _mask(p, mask):
    strides = [step * mask.itemsize for step in p.mask_strides]
    return as_strided(mask, (p.batch, p.heads, p.queries, p.keys), strides, writeable=False)


def _unseen(p):
    """−∞ where a query does not see a key, else 0; None where each sees all."""
    away = np.arange(p.keys) - np.arange(p.queries)[:, None]
    hidden = (away < p.earliest) | (away > p.latest)
    return np.where(hidden, -np.inf, 0).astype(p.dtype) if hidden.any() else None


def _scores(p, q, k, scores):
    scalar = scores.dtype.type
    calls = [partial(np.matmul, q, k.T, scores), partial(np.multiply, scores, scalar(p.scale), scores)]
    if p.softcap:
        calls += [
            partial(np.divide, scores, scalar(p.softcap), scores),
            partial(np.tanh, scores, scores),
            partial(np.multiply, scores, scalar(p.softcap), scores),
        ]
    return calls


def _weights(p, scores, row):
    """Where no score is above −∞ the largest is taken to be 0: all weights are 0, and so is their sum."""
    zero, one = scores.dtype.type(0), scores.dtype.type(1)

    def zeros(replaced, by):
        np.copyto(row, by, where=row == replaced)

    calls = [
        partial(np.maximum.reduce, scores, 1, None, row, True),
        partial(zeros, -np.inf, zero),
        partial(np.subtract, scores, row, scores),
        partial(np.exp, scores, scores),
        partial(np.add.reduce, scores, 1, None, row, True),
    ]
    if p.guarded:
        calls.append(partial(zeros, zero, one))
    return [*calls, partial(np.divide, scores, row, scores)]
