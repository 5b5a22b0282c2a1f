# op = "conv"
# rung = 3
# name = "batched_im2col"
# idea = "Lays the windows of as many images side by side as stay in cache, for a few wide GEMMs."
"""Blocks of images (or, where one image is too large, of its output rows) share one column matrix.

A block's GEMM gives (m / g, images, out_h · out_w), which is put in the order of y while the bias is added.
Kernels that cover one element (1×1) or the whole image need no columns: the image itself is the matrix.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from kernels.cpu.common import (
    FEW,
    PIECE,
    activation,
    carve,
    copy,
    interior,
    merged,
    needs_padding,
    padded_hw,
    product,
    room_elements,
    scratch_nbytes,
    sequence,
    windows,
)

# The column matrix of a block stays below this, so that the GEMM finds in cache what the copy has written.
COLUMNS_NBYTES = 4 << 20


def _pointwise(p):
    return p.kh == p.kw == p.stride_h == p.stride_w == 1 and not needs_padding(p)


def _whole_image(p):
    return p.out_h == p.out_w == 1 and (p.kh, p.kw) == (p.h, p.w) and not needs_padding(p) and p.group == 1


def _block(p):
    """(images, rows, groups) of a block: all groups and rows of several images where they fit, else less."""
    row = p.c // p.group * p.kh * p.kw * p.out_w * 4
    image = row * p.out_h
    if image > COLUMNS_NBYTES:
        return 1, max(1, COLUMNS_NBYTES // row), 1
    if image * p.group > COLUMNS_NBYTES:
        return 1, p.out_h, max(1, COLUMNS_NBYTES // image)
    return min(p.n, max(1, COLUMNS_NBYTES // (image * p.group))), p.out_h, p.group


def _shapes(p):
    images, rows, groups = _block(p)
    n = images * rows * p.out_w
    depth = p.c // p.group * p.kh * p.kw
    padded = (images, p.c, *padded_hw(p)) if needs_padding(p) else (0,)
    result = (groups * p.m // p.group, n) if images > 1 else (0,)
    # Of fewer images or rows, in a last block, sums may be blocked where those of a whole one are not.
    whole = room_elements(depth, p.m // p.group, n, groups)
    room = max(whole, min(FEW, -(-depth // PIECE) * groups * (p.m // p.group) * n) if depth > PIECE else 0)
    return padded, (groups * depth, n), result, (room,)


def _room(p):
    """Elements of sums of pieces where there are no columns."""
    if _pointwise(p):
        return room_elements(p.c // p.group, p.m // p.group, p.h * p.w, p.n * p.group)
    return room_elements(p.c * p.kh * p.kw, p.n, p.m)


def workspace(p):
    if _pointwise(p) or _whole_image(p):
        return scratch_nbytes((_room(p),))
    return scratch_nbytes(*_shapes(p))


def bind(p, inputs, output, workspace):
    bias = inputs[2] if p.bias else None
    if _pointwise(p):
        x = inputs[0].reshape(p.n, p.group, p.c // p.group, p.h * p.w)
        y = output.reshape(p.n, p.group, p.m // p.group, p.h * p.w)
        weights = inputs[1].reshape(p.group, p.m // p.group, p.c // p.group)
        if p.group == 1:
            x, y, weights = x[:, 0], y[:, 0], weights[0]
        calls = product(weights, x, y, workspace)
        if bias is not None:
            y = output.reshape(p.n, p.m, p.h * p.w)
            calls.append(partial(np.add, y, bias.reshape(p.m, 1), y))
        return sequence(calls + activation(p.activation, output))
    if _whole_image(p):
        y = output.reshape(p.n, p.m)
        calls = product(inputs[0].reshape(p.n, -1), inputs[1].reshape(p.m, -1).T, y, workspace)
        if bias is not None:
            calls.append(partial(np.add, y, bias.reshape(p.m), y))
        return sequence(calls + activation(p.activation, output))

    images, rows, groups = _block(p)
    x = inputs[0].reshape(p.n, p.c, p.h, p.w)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)
    padded, columns, result, room = carve(workspace, *_shapes(p))
    calls = []
    if needs_padding(p):
        calls.append(partial(padded.fill, 0))
    for first in range(0, p.n, images):
        count = min(images, p.n - first)
        block = x[first : first + count]
        if needs_padding(p):
            calls.append(partial(np.copyto, interior(p, padded[:count]), block))
            block = padded[:count]
        for top in range(0, p.out_h, rows):
            for g in range(0, p.group, groups):
                part = y[first : first + count, :, top : top + rows]
                calls += _product(p, block, inputs[1], bias, part, top, range(g, min(g + groups, p.group)),
                                  columns, result, room)  # fmt: skip
        calls += activation(p.activation, y[first : first + count])
    return sequence(calls)


def _product(p, x, weights, bias, y, top, groups, columns, result, room):
    """Calls for some groups of one block: x (images, c, …) padded, y (images, m, rows, out_w)."""
    per_group, filters = p.c // p.group, p.m // p.group
    images, _, rows, _ = y.shape
    depth, n = per_group * p.kh * p.kw, images * rows * p.out_w
    seen = windows(replace(p, out_h=rows), x[:, :, top * p.stride_h :])
    seen = seen[:, groups.start * per_group : groups.stop * per_group].transpose(1, 2, 3, 0, 4, 5)
    matrix = columns.reshape(-1)[: len(groups) * depth * n].reshape(len(groups), depth, n)
    w = weights.reshape(p.group, filters, depth)[groups.start : groups.stop]
    into = y[:, groups.start * filters : groups.stop * filters]
    direct = images == 1
    if direct:  # the GEMM writes y itself: rows of m, out_h · out_w apart
        result = np.lib.stride_tricks.as_strided(
            into, (len(groups), filters, n), (filters * into.strides[1], into.strides[1], into.strides[3])
        )
    else:
        result = result.reshape(-1)[: len(groups) * filters * n].reshape(len(groups), filters, n)
    calls = [copy(matrix.reshape(seen.shape), seen)]
    if len(groups) == 1:
        calls += product(w[0], matrix[0], result[0], room)
    else:
        calls += product(w, matrix, result, room)
    ordered = into
    if not direct:
        ordered = result.reshape(len(groups) * filters, images, rows, p.out_w).transpose(1, 0, 2, 3)
    if bias is not None:
        shift = bias.reshape(p.m, 1, 1)[groups.start * filters : groups.stop * filters]
        shift = np.broadcast_to(shift, into.shape)
        a, b, out = merged(ordered, shift, into)
        calls.append(partial(np.add, a, b, out))
    elif not direct:
        calls.append(copy(into, ordered))
    return calls
