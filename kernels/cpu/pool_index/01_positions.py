# op = "pool_index"
# rung = 1
# name = "positions"
# idea = "Goes over the window's positions, one shifted image at a time, and notes where a larger value is."
"""The place of the first position with the largest value. A window begins with its first place within the
image, so that padding is never one."""

from functools import partial

import numpy as np

from kernels.cpu.common import carve, interior, padded_hw, scratch_nbytes, sequence, windows


def _shapes(p):
    pool = p.pool
    outputs = (pool.n, pool.c, pool.out_h, pool.out_w)
    return (pool.n, pool.c, *padded_hw(pool)), outputs, outputs


def workspace(p):
    return scratch_nbytes(*_shapes(p))


def bind(p, inputs, output, workspace):
    pool = p.pool
    x = inputs[0].reshape(pool.n, pool.c, pool.h, pool.w)
    y = output.reshape(pool.n, pool.c, pool.out_h, pool.out_w)
    padded, best, flags = carve(workspace, *_shapes(p))
    larger = flags.reshape(-1).view(bool)[: best.size].reshape(best.shape)
    shifted = windows(pool, padded)  # (n, c, kh, kw, out_h, out_w)
    rows = np.arange(pool.out_h)[:, None] * pool.stride_h - pool.pad_top
    columns = np.arange(pool.out_w) * pool.stride_w - pool.pad_left
    images = np.arange(pool.n * pool.c).reshape(pool.n, pool.c, 1, 1) * (pool.h * pool.w)

    def places(row, column):
        return column * pool.h + row if p.by_columns else row * pool.w + column

    def within(first, step):
        return first + -(np.minimum(first, 0) // step) * step

    calls = [
        partial(padded.fill, -np.inf),
        partial(np.copyto, interior(pool, padded), x),
        partial(best.fill, -np.inf),
        partial(np.copyto, y, places(within(rows, pool.dilation_h), within(columns, pool.dilation_w))),
    ]
    for i in range(pool.kh):
        for j in range(pool.kw):
            here = places(rows + i * pool.dilation_h, columns + j * pool.dilation_w)
            calls += [
                partial(np.greater, shifted[:, :, i, j], best, larger),
                partial(np.copyto, best, shifted[:, :, i, j], where=larger),
                partial(np.copyto, y, here, where=larger),
            ]
    calls.append(partial(np.add, y, images, y))
    return sequence(calls)
