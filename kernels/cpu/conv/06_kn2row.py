# op = "conv"
# rung = 6
# name = "kn2row"
# idea = "A product of matrices a kernel position, on the image as it lies: results are shifted, not patches."
# side = true
# needs = {stride = 1}
"""y = Σ over (i, j) of the product w[:, :, i, j] @ x, shifted by (i, j) and cropped.

What im2col copies before one large product, this adds up after k² smaller ones: scratch of (m / g) padded
images instead of (c / g) · k². A. Vasudevan, A. Anderson and D. Gregg, "Parallel Multi Channel Convolution
using General Matrix Multiplication", 2017 (arXiv:1704.04428). Outputs at the edge add products of the
padding's zeros, so that only NaN and infinity within a window reach its output.
"""

import numpy as np

from kernels.cpu.common import (
    activation,
    carve,
    interior,
    padded_hw,
    product,
    room_elements,
    scratch_nbytes,
    sequence,
)


def workspace(p):
    return scratch_nbytes(*_shapes(p))


def _shapes(p):
    height, width = padded_hw(p)
    room = room_elements(p.c // p.group, p.m // p.group, height * width)
    return (p.c, height, width), (p.m // p.group, height, width), (room,)


def pack(p, inputs):
    weights = inputs[1]
    if weights is not None:
        # (kh, kw, group, m / group, c / group): a matrix a position and group
        weights = weights.reshape(p.group, p.m // p.group, p.c // p.group, p.kh, p.kw)
        weights = np.ascontiguousarray(weights.transpose(3, 4, 0, 1, 2))
    return [inputs[0], weights, *inputs[2:]]


def bind(p, inputs, output, workspace):
    x = inputs[0].reshape(p.n, p.c, p.h, p.w)
    weights = inputs[1]
    if weights.shape != (p.kh, p.kw, p.group, p.m // p.group, p.c // p.group):
        weights = pack(p, inputs)[1]
    y = output.reshape(p.n, p.group, p.m // p.group, p.out_h, p.out_w)
    height, width = padded_hw(p)
    padded, products, room = carve(workspace, *_shapes(p))
    inside = interior(p, padded[None])[0]
    images = padded.reshape(p.group, p.c // p.group, height * width)
    flat = products.reshape(p.m // p.group, height * width)
    calls = {
        (i, j, g): sequence(product(weights[i, j, g], images[g], flat, room))
        for i, j, g in np.ndindex(p.kh, p.kw, p.group)
    }
    after = activation(p.activation, output)

    def run():
        padded.fill(0)
        for n in range(p.n):
            np.copyto(inside, x[n])
            for g in range(p.group):
                y[n, g] = 0 if not p.bias else inputs[2].reshape(p.group, -1, 1, 1)[g]
                for i in range(p.kh):
                    for j in range(p.kw):
                        calls[i, j, g]()
                        top, left = i * p.dilation_h, j * p.dilation_w
                        y[n, g] += products[:, top : top + p.out_h, left : left + p.out_w]
        for call in after:
            call()

    return run
