# op = "resize"
# rung = 1
# name = "taps"
# idea = "What an output is a sum of is worked out once; a pass gathers it, the rows before the columns."
"""y = Σ over b of columns[b] · (Σ over a of rows[a] · x): the axes are resized one after the other, for each
is a sum of its own. The nearest element is a sum of one."""

from functools import partial

import numpy as np

from kernels.cpu.common import carve, copy, scratch_nbytes, sequence

BLOCK_NBYTES = 256 << 10  # of what lies between the two axes, so that it is still in cache


def _block(p):
    """Images a block."""
    return min(p.outer, max(1, BLOCK_NBYTES // (4 * p.out_h * max(p.w, p.out_w) * p.inner)))


def _shapes(p):
    images = _block(p)
    return (images, p.out_h, p.w, p.inner), (images, p.out_h, max(p.w, p.out_w), p.inner)


def workspace(p):
    return scratch_nbytes(*_shapes(p))


def bind(p, inputs, output, workspace):
    x = inputs[0].reshape(p.outer, p.h, p.w, p.inner)
    y = output.reshape(p.outer, p.out_h, p.out_w, p.inner)
    between, part = carve(workspace, *_shapes(p))
    rows, columns = p.taps()
    calls = []
    for first in range(0, p.outer, len(between)):
        block, into = x[first : first + len(between)], y[first : first + len(between)]
        tall = between[: len(block)]
        gathered = part.reshape(-1)[: tall.size].reshape(tall.shape)
        calls += _along(1, rows, block, tall, gathered)
        gathered = part.reshape(-1)[: into.size].reshape(into.shape)
        calls += _along(2, columns, tall, into, gathered)
    for axis, taps in ((1, rows), (2, columns)):
        for start, stop in _runs(taps.beyond):
            view = y[:, start:stop] if axis == 1 else y[:, :, start:stop]
            calls.append(partial(np.copyto, view, np.float32(p.value)))
    return sequence(calls)


def _along(axis, taps, x, into, part):
    """Calls that sum the taps of one axis; `part` is scratch as large as `into`."""
    index, weight, _ = taps
    if index.shape == (x.shape[axis], 1) and (index[:, 0] == np.arange(len(index))).all():
        return [copy(into, x)]  # as it is
    calls = []
    for tap in range(index.shape[1]):
        target = into if tap == 0 else part
        # mode="clip" writes straight to `out`; every index is in range by construction
        calls.append(partial(np.take, x, index[:, tap], axis, target, "clip"))
        if index.shape[1] > 1:
            factor = weight[:, tap].astype(np.float32).reshape(-1, *(1,) * (3 - axis))
            calls.append(partial(np.multiply, target, factor, target))
        if tap > 0:
            calls.append(partial(np.add, into, part, into))
    return calls


def _runs(flags):
    """(first, one after the last) of each run of flags that are set."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(int)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
