# op = "qconv"
# rung = 1
# name = "im2col"
# idea = "An image's windows, less their zero point, as floating-point columns, whose sums are exact in BLAS."
# [needs]
# dtype = ["uint8", "int8"]
# to = ["int32", "float32", "uint8", "int8"]
"""Per image, and as many of its rows at once as a core's caches hold: y (m / g, rows) = w[g] @ columns."""

from functools import partial

import numpy as np

from kernels.cpu.common import copy, interior, padded_hw, sequence, windows
from kernels.cpu.quantized import carrier, carved, carved_nbytes, centred, finish

BLOCK = 1 << 19  # elements of the columns at once


def _rows(p):
    """Of the output at once."""
    c = p.product
    return max(1, min(c.out_h, BLOCK // (c.c * c.kh * c.kw * c.out_w)))


def _shapes(p):
    c, each = p.product, carrier(p)
    positions = _rows(p) * c.out_w
    return (
        ((c.m, p.terms), each),
        ((1, c.c, *padded_hw(c)), each),
        ((c.c * c.kh * c.kw * positions,), each),
        ((c.m * positions,), each),
        ((c.m * positions,), np.float64),
    )


def workspace(p):
    return carved_nbytes(*_shapes(p))


def bind(p, inputs, output, workspace):
    c, maps = p.product, p.product.m // p.product.group
    x = inputs[0].reshape(c.n, 1, c.c, c.h, c.w)
    y = output.reshape(c.n, c.m, c.out_h, c.out_w)
    weights, padded, columns, sums, wide = carved(workspace, *_shapes(p))
    inside, seen = interior(c, padded), windows(c, padded)[0]
    calls = centred(weights, inputs[1].reshape(c.m, -1), inputs[3].reshape(-1, 1))
    calls.append(partial(padded.fill, 0))
    for n in range(c.n):
        calls += centred(inside, x[n], inputs[2])
        for first in range(0, c.out_h, _rows(p)):
            last = min(c.out_h, first + _rows(p))
            positions = (last - first) * c.out_w
            laid = columns[: c.c * c.kh * c.kw * positions]
            calls.append(copy(laid.reshape(c.c, c.kh, c.kw, last - first, c.out_w), seen[..., first:last, :]))
            matrices = laid.reshape(c.group, p.terms, positions)
            into, real = (array[: c.m * positions].reshape(c.m, positions) for array in (sums, wide))
            product = into.reshape(c.group, maps, positions)
            calls.append(partial(np.matmul, weights.reshape(c.group, maps, p.terms), matrices, product))
            to = y[n, :, first:last].reshape(c.m, positions)
            calls += finish(p, into, real, to, inputs[4:], 0)
    return sequence(calls)
