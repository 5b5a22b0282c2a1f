# op = "conv_transpose"
# rung = 1
# name = "product_and_add"
# idea = "One product gives what every element adds at every tap of its window; each tap is added up at once."
"""What is added at tap (i, j) is w[:, :, i, j]ᵀ @ x; it belongs at every stride-th row and column of y,
(i, j) dilations on from the padded beginning. The product of one image and group is kept at a time."""

from functools import partial

import numpy as np

from kernels.cpu.common import carve, product, room_elements, scratch_nbytes, sequence


def _shapes(p):
    added = (p.m // p.group, p.kh, p.kw, p.h, p.w)
    return added, (room_elements(p.c // p.group, added[0] * p.kh * p.kw, p.h * p.w),)


def workspace(p):
    return scratch_nbytes(*_shapes(p))


def bind(p, inputs, output, workspace):
    x = inputs[0].reshape(p.n, p.group, p.c // p.group, p.h * p.w)
    weights = inputs[1].reshape(p.group, p.c // p.group, -1)
    y = output.reshape(p.n, p.group, p.m // p.group, p.out_h, p.out_w)
    added, room = carve(workspace, *_shapes(p))
    flat = added.reshape(-1, p.h * p.w)
    shift = np.float32(0)
    if p.bias:
        shift = inputs[2].reshape(p.group, p.m // p.group, 1, 1)
    calls = [partial(np.copyto, y, shift)]
    for n in range(p.n):
        for g in range(p.group):
            calls += product(weights[g].T, x[n, g], flat, room)
            for i in range(p.kh):
                rows, down = _reach(i * p.dilation_h - p.pad_top, p.stride_h, p.h, p.out_h)
                for j in range(p.kw):
                    columns, across = _reach(j * p.dilation_w - p.pad_left, p.stride_w, p.w, p.out_w)
                    into, tap = y[n, g, :, down, across], added[:, i, j, rows, columns]
                    if into.size:
                        calls.append(partial(np.add, into, tap, into))
    return sequence(calls)


def _reach(first, stride, size, out):
    """Of elements that belong at first, first + stride, …: which lie within 0 … out, and where."""
    low = max(0, -(first // stride))
    high = max(low, min(size, -((first - out) // stride)))
    return slice(low, high), slice(first + low * stride, max(0, first + (high - 1) * stride + 1), stride)
