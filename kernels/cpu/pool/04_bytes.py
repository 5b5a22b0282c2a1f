# op = "pool"
# rung = 4
# name = "bytes"
# idea = "Bytes as they are: the rows of a window first, in long runs, then what is left along the columns."
# [needs]
# kind = ["max"]
# activation = ["none"]
# dtype = ["uint8", "int8"]
"""Padding is left out of both halves: it never wins."""

from functools import partial

import numpy as np

from kernels.cpu.common import sequence, typed, typed_nbytes

BLOCK_NBYTES = 256 << 10


def _planes(p):
    """At once: what the first half has written stays in a cache for the second."""
    return max(1, min(p.n * p.c, BLOCK_NBYTES // max(1, p.out_h * p.w)))


def workspace(p):
    return typed_nbytes(_planes(p) * p.out_h * p.w, p.dtype)


def _reached(taps, size, out, stride, dilation, pad):
    """Of each tap the outputs that it has a pixel for, and these pixels."""
    for tap in range(taps):
        off = tap * dilation - pad
        first, last = max(0, -(off // stride)), min(out, (size - 1 - off) // stride + 1)
        if first < last:
            begin = first * stride + off
            yield slice(first, last), slice(begin, begin + (last - first - 1) * stride + 1, stride)


def bind(p, inputs, output, workspace):
    planes, lowest = p.n * p.c, np.iinfo(p.dtype).min
    x, y = inputs[0].reshape(planes, p.h, p.w), output.reshape(planes, p.out_h, p.out_w)
    step = _planes(p)
    whole = typed(workspace, step * p.out_h * p.w, p.dtype)
    rows = [*_reached(p.kh, p.h, p.out_h, p.stride_h, p.dilation_h, p.pad_top)]
    columns = [*_reached(p.kw, p.w, p.out_w, p.stride_w, p.dilation_w, p.pad_left)]
    calls = []
    for first in range(0, planes, step):
        of, to = x[first : first + step], y[first : first + step]
        half = whole[: len(of) * p.out_h * p.w].reshape(len(of), p.out_h, p.w)
        calls += _largest(half, ((half[:, at], of[:, place]) for at, place in rows), lowest)
        calls += _largest(to, ((to[..., at], half[..., place]) for at, place in columns), lowest)
    return sequence(calls)


def _largest(into, pairs, lowest):
    return [partial(into.fill, lowest), *(partial(np.maximum, at, of, out=at) for at, of in pairs)]
