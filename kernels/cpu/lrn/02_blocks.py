# op = "lrn"
# rung = 2
# name = "blocks"
# idea = "Works block by block inside the cache, doubles its sums, takes square roots in place of a power."
"""Sums of 1, 2, 4, … squares are built by doubling: size 5 costs three additions. s^¾ = √s · √√s."""

from functools import partial

import numpy as np

from kernels.cpu.common import carve, scratch_nbytes, sequence

BLOCK_NBYTES = 512 << 10


def _shapes(p):
    width = min(p.inner, max(16, BLOCK_NBYTES // (4 * (p.c + p.size - 1))))
    return ((p.c + p.size - 1, width),) * 3


def workspace(p):
    return scratch_nbytes(*_shapes(p))


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(p.n, p.c, p.inner), output.reshape(p.n, p.c, p.inner)
    blocks = carve(workspace, *_shapes(p))
    calls = []
    for image in range(p.n):
        for first in range(0, p.inner, blocks[0].shape[1]):
            part = slice(first, min(first + blocks[0].shape[1], p.inner))
            calls += _block(p, x[image, :, part], y[image, :, part], blocks)
    return sequence(calls)


def _block(p, x, y, blocks):
    """Calls for one block, x and y (c, width)."""
    count = x.shape[1]
    squares, sums, spare = (b.reshape(-1)[: (p.c + p.size - 1) * count].reshape(-1, count) for b in blocks)
    before = (p.size - 1) // 2
    centre = squares[before : before + p.c]
    calls = []
    if p.size > 1:
        calls = [partial(squares[:before].fill, 0), partial(squares[before + p.c :].fill, 0)]
    calls.append(partial(np.multiply, x, x, centre))
    # Invariant: held[i] = the sum of `width` squares from row i on; bits of size are worked off from the top.
    held, width = squares, 1
    for bit in bin(p.size)[3:]:
        rows = p.c + p.size - 2 * width
        # To and fro between two arrays: the squares are still needed, and NumPy copies what overlaps.
        calls.append(partial(np.add, held[:rows], held[width : width + rows], sums[:rows]))
        held, width, sums, spare = sums, 2 * width, spare, sums
        if bit == "1":
            rows -= 1
            calls.append(partial(np.add, held[:rows], squares[width : width + rows], held[:rows]))
            width += 1
    total = held[: p.c]
    calls.append(partial(np.multiply, total, np.float32(p.alpha / p.size), total))
    calls.append(partial(np.add, total, np.float32(p.bias), total))
    if p.beta == 0.75:
        root = sums[: p.c]
        calls.append(partial(np.sqrt, total, root))
        calls.append(partial(np.sqrt, root, total))
        calls.append(partial(np.multiply, root, total, total))
    elif p.beta == 0.5:
        calls.append(partial(np.sqrt, total, total))
    elif p.beta != 1:
        calls.append(partial(np.power, total, np.float32(p.beta), total))
    calls.append(partial(np.divide, x, total, y))
    return calls
