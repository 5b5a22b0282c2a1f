# op = "conv"
# rung = 4
# name = "winograd"
# method = "winograd"
# idea = "Winograd's F(2×2, 3×3): four outputs of a 3×3 window for 16 multiplications instead of 36."
# side = true
# needs = {kernel = 3, stride = 1, dilation = 1}
"""Y = Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A over tiles d of 4 × 4 elements that overlap by two; the products of all
tiles are 16 GEMMs, one a place in the tile.

A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2016 (arXiv:1509.09308), section 4.
A sum mixes the elements of a tile, so that NaN or infinity reaches all four outputs of it.
"""

from functools import partial

import numpy as np

from kernels.cpu.common import activation, carve, scratch_nbytes, sequence

G = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], np.float32)
# The transformed images and products of a block of images stay below this, to be found in cache.
BLOCK_NBYTES = 8 << 20


def _tiles(p):
    return -(-p.out_h // 2), -(-p.out_w // 2)


def _shapes(p):
    th, tw = _tiles(p)
    height, width = max(2 * th + 2, p.pad_top + p.h), max(2 * tw + 2, p.pad_left + p.w)
    images = max(1, min(p.n, BLOCK_NBYTES // (4 * 16 * (p.c + p.m) * th * tw)))
    return (
        (images, p.c, height, width),  # padded images
        (4, p.c, images, th, width),  # Bᵀ d
        (4, 4, p.c, images, th, tw),  # Bᵀ d B
        (4, 4, p.m, images, th, tw),  # products
        (2, 4, p.m, images, th, tw),  # Aᵀ of them
    )


def workspace(p):
    return scratch_nbytes(*_shapes(p))


def _transformed(p, weights):
    """(16, group, m / group, c / group) out of (m, c / group, 3, 3)."""
    g = weights.reshape(p.m, p.c // p.group, 3, 3)
    u = np.einsum("ai,mcij,bj->abmc", G, g, G)
    return np.ascontiguousarray(u, np.float32).reshape(16, p.group, p.m // p.group, p.c // p.group)


def _copy_transformed(p, weights, into):
    np.copyto(into, _transformed(p, weights))


def pack(p, inputs):
    return [inputs[0], None if inputs[1] is None else _transformed(p, inputs[1]), *inputs[2:]]


def bind(p, inputs, output, workspace):
    x = inputs[0].reshape(p.n, p.c, p.h, p.w)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)
    padded, rows, tiles, products, sums = carve(workspace, *_shapes(p))
    calls = [partial(padded.fill, 0)]
    if inputs[1].ndim == 4 and inputs[1].shape[0] == 16 and inputs[1].size == p.m * (p.c // p.group) * 16:
        factors = inputs[1]
    else:  # weights that are only there at run time
        factors = np.empty((16, p.group, p.m // p.group, p.c // p.group), np.float32)
        calls.append(partial(_copy_transformed, p, inputs[1], factors))
    for first in range(0, p.n, len(padded)):
        part = slice(first, min(first + len(padded), p.n))
        calls += _block(p, x[part], factors, y[part], padded, rows, tiles, products, sums)
    if p.bias:
        calls.append(partial(np.add, y, inputs[2].reshape(p.m, 1, 1), y))
    return sequence(calls + activation(p.activation, output))


def _block(p, x, factors, y, padded, rows, tiles, products, sums):
    """Calls for a block of images x (images, c, h, w) → y (images, m, out_h, out_w)."""
    th, tw = _tiles(p)
    images = len(x)
    inside = padded[:images, :, p.pad_top : p.pad_top + p.h, p.pad_left : p.pad_left + p.w]
    calls = [partial(np.copyto, inside, x)]
    # A last block may hold fewer images: the same scratch, dense for as many as there are.
    if images < len(padded):
        rows, tiles, products, sums = (
            part.reshape(-1)[: part.size // len(padded) * images].reshape(
                tuple(images if axis == part.ndim - 3 else n for axis, n in enumerate(part.shape))
            )
            for part in (rows, tiles, products, sums)
        )
    d = [padded[:images, :, i : i + 2 * th : 2].transpose(1, 0, 2, 3) for i in range(4)]
    calls += _bt(d, rows)
    for i in range(4):
        calls += _bt([rows[i, ..., j : j + 2 * tw : 2] for j in range(4)], tiles[i])
    calls.append(
        partial(
            np.matmul,
            factors,
            tiles.reshape(16, p.group, p.c // p.group, images * th * tw),
            products.reshape(16, p.group, p.m // p.group, images * th * tw),
        )
    )
    calls += _at([products[i] for i in range(4)], sums)
    for a in range(2):
        for b in range(2):
            into = y[:, :, a::2, b::2].transpose(1, 0, 2, 3)
            if not into.size:
                continue
            high, wide = into.shape[2:]
            s = [sums[a, j, :, :, :high, :wide] for j in range(4)]
            ends = (np.add, s[0], s[1], s[2]) if b == 0 else (np.subtract, s[1], s[2], s[3])
            calls += [partial(ends[0], ends[1], ends[2], into), partial(ends[0], into, ends[3], into)]
    return calls


def _bt(d, into):
    """Bᵀ d along one axis: d0 − d2, d1 + d2, d2 − d1, d1 − d3."""
    return [
        partial(np.subtract, d[0], d[2], into[0]),
        partial(np.add, d[1], d[2], into[1]),
        partial(np.subtract, d[2], d[1], into[2]),
        partial(np.subtract, d[1], d[3], into[3]),
    ]


def _at(m, into):
    """Aᵀ m along one axis: m0 + m1 + m2, m1 − m2 − m3."""
    return [
        partial(np.add, m[0], m[1], into[0]),
        partial(np.add, into[0], m[2], into[0]),
        partial(np.subtract, m[1], m[2], into[1]),
        partial(np.subtract, into[1], m[3], into[1]),
    ]
