# op = "qgemm"
# rung = 1
# name = "blas"
# idea = "The matrices, less their zero points, as floating-point ones, whose sums are exact in BLAS."
# [needs]
# dtype = ["uint8", "int8"]
# to = ["int32", "float32", "uint8", "int8"]
"""By columns: of b as many at once, widened, as a core's own cache holds."""

from functools import partial

import numpy as np

from kernels.cpu.common import sequence
from kernels.cpu.quantized import carrier, carved, carved_nbytes, centred, finish

BLOCK = 1 << 18  # elements of b that are widened at once


def _shapes(p):
    g, each = p.product, carrier(p)
    columns = max(1, min(g.n, BLOCK // g.k))
    b = (columns, g.k) if g.trans_b else (g.k, columns)
    return ((g.m, g.k), each), (b, each), ((g.m, columns), each), ((g.m, columns), np.float64)


def workspace(p):
    return carved_nbytes(*_shapes(p))


def bind(p, inputs, output, workspace):
    g = p.product
    a, b = (array.reshape(shape) for array, shape in zip(inputs, p.input_shapes[:2], strict=False))
    y = output.reshape(g.batch, g.m, g.n)
    left, right, sums, wide = carved(workspace, *_shapes(p))
    step = max(right.shape[0] if g.trans_b else right.shape[1], 1)
    calls = []
    for batch in range(g.batch):
        if batch == 0 or g.stride_a:
            calls += centred(left, a[batch if g.stride_a else 0], inputs[2])
        whole = b[batch if g.stride_b else 0]
        for first in range(0, g.n, step):
            last = min(g.n, first + step)
            cut = slice(first, last)
            zeros = inputs[3][cut] if p.weight_zeros > 1 else inputs[3]
            if g.trans_b:
                part = right[: last - first]
                calls += centred(part, whole[cut], zeros.reshape(-1, 1))
                part = part.T
            else:
                part = right.reshape(-1)[: g.k * (last - first)].reshape(g.k, -1)
                calls += centred(part, whole[:, cut], zeros)
            into, real = (x.reshape(-1)[: g.m * (last - first)].reshape(g.m, -1) for x in (sums, wide))
            calls.append(partial(np.matmul, left, part, into))
            behind = [array[cut] for array in inputs[4:]]
            calls += finish(p, into, real, y[batch, :, cut], behind, 1)
    return sequence(calls)
