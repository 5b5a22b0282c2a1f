# op = "pool"
# rung = 2
# name = "separable"
# idea = "Reduces along the rows first, in long contiguous runs, and only what is left along the columns."
"""max over (i, j) = max over j of max over i, and sums alike: kh + kw passes in place of kh · kw.

Blocks of planes are small enough that what the first half has written is still in cache for the second, and
what the second has written for the activation.
"""

from functools import partial

import numpy as np

from kernels.cpu.common import (
    activation,
    carve,
    counts,
    interior,
    merged,
    needs_padding,
    padded_hw,
    scratch_nbytes,
    sequence,
)

BLOCK_NBYTES = 256 << 10
SMALL = (
    1 << 14
)  # pixels of an image whose sum BLAS, which adds one after the other, forms faster and as exactly


def _whole_image(p):
    return (p.out_h, p.out_w, p.kh, p.kw) == (1, 1, p.h, p.w) and not needs_padding(p)


def _shapes(p):
    height, width = padded_hw(p)
    planes = min(p.n * p.c, max(1, BLOCK_NBYTES // (4 * height * width)))
    return (planes, height, width) if needs_padding(p) else (0,), (planes, p.out_h, width)


def workspace(p):
    return 0 if _whole_image(p) else scratch_nbytes(*_shapes(p))


def bind(p, inputs, output, workspace):
    combine = np.maximum if p.kind == "max" else np.add
    divisor = None if p.kind == "max" else counts(p)
    if _whole_image(p):
        y = output.reshape(p.n * p.c)
        x = inputs[0].reshape(p.n * p.c, -1)
        calls = [partial(combine.reduce, x, 1, None, y)]
        if p.kind == "average" and x.shape[1] <= SMALL:
            calls = [partial(np.matmul, x, np.ones(x.shape[1], x.dtype), y)]
        if divisor is not None:
            calls.append(partial(np.divide, y, divisor[0, 0], y))
        return sequence(calls + activation(p.activation, y))
    x = inputs[0].reshape(p.n * p.c, p.h, p.w)
    y = output.reshape(p.n * p.c, p.out_h, p.out_w)
    padded, rows = carve(workspace, *_shapes(p))
    reach_h, reach_w = (p.out_h - 1) * p.stride_h + 1, (p.out_w - 1) * p.stride_w + 1
    calls = []
    if needs_padding(p):
        calls.append(partial(padded.fill, -np.inf if p.kind == "max" else 0))
    for first in range(0, p.n * p.c, len(rows)):
        block, into = x[first : first + len(rows)], y[first : first + len(rows)]
        if needs_padding(p):
            inside = interior(p, padded[None, : len(block)])[0]
            calls.append(partial(np.copyto, inside, block))
            block = padded[: len(block)]
        left = rows[: len(block)]
        tops = range(0, p.kh * p.dilation_h, p.dilation_h)
        lefts = range(0, p.kw * p.dilation_w, p.dilation_w)
        calls += _reduce(combine, [block[:, top : top + reach_h : p.stride_h] for top in tops], left)
        calls += _reduce(combine, [left[:, :, at : at + reach_w : p.stride_w] for at in lefts], into)
        if divisor is not None:
            calls.append(partial(np.divide, into, divisor, into))
        calls += activation(p.activation, into)
    return sequence(calls)


def _reduce(combine, views, into):
    """Calls that combine all views, element by element, into `into`."""
    *views, into = merged(*views, into)
    if len(views) == 1:
        return [partial(np.copyto, into, views[0])]
    calls = [partial(combine, views[0], views[1], out=into)]
    return calls + [partial(combine, into, view, out=into) for view in views[2:]]
