# op = "conv"
# rung = 7
# name = "depthwise"
# idea = "A plane is one long row: a tap of the window is that row moved along, and a product sums them."
# [needs]
# depthwise = true
"""y[c] = w[c] (maps, taps) @ the rows of plane c (taps, out_h · width), row t being the plane moved to tap t.

A padded plane of `width` columns is read as one row, in which tap (i, j) of every window lies i · width + j
further on: one long run a tap, where windows cut into rows have out_w elements a run. What lies between the
end of one row and the beginning of the next is computed too, and left out of y. Strides are taken apart
first: of every stride_h-th row and stride_w-th column a plane of its own, in which windows move by one.
"""

from functools import partial

import numpy as np

from kernels.cpu.common import activation, carve, copy, scratch_nbytes, sequence

# The rows of a block stay below this, so that the product finds in cache what was copied.
ROWS_NBYTES = 4 << 20


def _sizes(p):
    """Of a plane taken apart: its rows and columns. As many as the furthest window reaches."""
    return (
        p.out_h + (p.kh - 1) * p.dilation_h // p.stride_h,
        p.out_w + (p.kw - 1) * p.dilation_w // p.stride_w,
    )


def _block(p):
    """(images, channels) of a block: all channels of several images where they fit, else some of one."""
    channel = p.kh * p.kw * p.out_h * _sizes(p)[1] * 4
    if channel * p.c > ROWS_NBYTES:
        return 1, max(1, ROWS_NBYTES // channel)
    return min(p.n, ROWS_NBYTES // (channel * p.c)), p.c


def _shapes(p):
    images, channels = _block(p)
    height, width = _sizes(p)
    planes = (p.stride_h, p.stride_w, images, channels, height * width)
    rows = (images, channels, p.kh * p.kw, p.out_h * width)
    return planes, rows, (images, channels, p.m // p.c, p.out_h * width)


def workspace(p):
    return scratch_nbytes(*_shapes(p))


def bind(p, inputs, output, workspace):
    images, channels = _block(p)
    height, width = _sizes(p)
    maps = p.m // p.c
    x = inputs[0].reshape(p.n, p.c, p.h, p.w)
    weights = inputs[1].reshape(p.c, maps, p.kh * p.kw)
    y = output.reshape(p.n, p.c, maps, p.out_h, p.out_w)
    planes, rows, sums = carve(workspace, *_shapes(p))
    length = (p.out_h - 1) * width + p.out_w  # from the first output to the last
    calls = [partial(planes.fill, 0)]  # the padding; the insides are written over by each block
    for n in range(0, p.n, images):
        for c in range(0, p.c, channels):
            block = x[n : n + images, c : c + channels]
            here = np.s_[: block.shape[0], : block.shape[1]]
            calls += _apart(p, block, planes[:, :, *here], (height, width))
            for i in range(p.kh):
                for j in range(p.kw):
                    down, across = i * p.dilation_h, j * p.dilation_w
                    plane = planes[down % p.stride_h, across % p.stride_w]
                    first = down // p.stride_h * width + across // p.stride_w
                    moved = plane[*here, first : first + length]
                    calls.append(copy(rows[*here, i * p.kw + j, :length], moved))
            into = sums[*here, :, :length]
            calls.append(partial(np.matmul, weights[c : c + channels], rows[*here, :, :length], into))
            kept = sums[here].reshape(*into.shape[:3], p.out_h, width)[..., : p.out_w]
            part = y[n : n + images, c : c + channels]
            if p.bias:
                shift = inputs[2].reshape(p.c, maps, 1, 1)[c : c + channels]
                calls.append(partial(np.add, kept, shift, part))
            else:
                calls.append(copy(part, kept))
            calls += activation(p.activation, part)
    return sequence(calls)


def _apart(p, block, planes, sizes):
    """Calls that copy images (n, c, h, w) into planes (stride_h, stride_w, n, c, height · width)."""
    calls = []
    for a in range(p.stride_h):
        top, rows = _span(a - p.pad_top, p.stride_h, p.h, sizes[0])
        for b in range(p.stride_w):
            left, columns = _span(b - p.pad_left, p.stride_w, p.w, sizes[1])
            whole = planes[a, b].reshape(*block.shape[:2], *sizes)
            inside = whole[:, :, top : top + len(rows), left : left + len(columns)]
            if inside.size:
                of = np.s_[rows.start : rows.stop : p.stride_h, columns.start : columns.stop : p.stride_w]
                calls.append(copy(inside, block[:, :, *of]))
    return calls


def _span(first, stride, size, count):
    """Of `count` places from `first` on, a stride apart: the first within 0 … size, and all of them there."""
    before = max(0, -(first // stride))
    places = range(first, first + count * stride, stride)[before:]
    return before, range(places.start, min(size, places.stop), stride)
