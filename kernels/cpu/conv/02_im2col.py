# op = "conv"
# rung = 2
# name = "im2col"
# idea = "Copies an image's windows into the columns of a matrix, so that one GEMM a group adds it all up."
"""Per image: y (m, out_h · out_w) = w (m, c · kh · kw) @ columns (c · kh · kw, out_h · out_w)."""

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
    windows,
)


def _shapes(p):
    # one padded image, one column matrix, room for sums of pieces
    room = room_elements(_depth(p), p.m // p.group, p.out_h * p.out_w, p.group)
    return (1, p.c, *padded_hw(p)), (p.c, p.kh, p.kw, p.out_h, p.out_w), (room,)


def _depth(p):
    return p.c // p.group * p.kh * p.kw


def workspace(p):
    return scratch_nbytes(*_shapes(p))


def bind(p, inputs, output, workspace):
    x = inputs[0].reshape(p.n, 1, p.c, p.h, p.w)
    depth = _depth(p)
    weights = inputs[1].reshape(p.group, p.m // p.group, depth)
    y = output.reshape(p.n, p.group, p.m // p.group, p.out_h * p.out_w)
    padded, columns, room = carve(workspace, *_shapes(p))
    inside = interior(p, padded)
    shifted = windows(p, padded)[0]
    matrices = columns.reshape(p.group, depth, p.out_h * p.out_w)
    products = [sequence(product(weights, matrices, image, room)) for image in y]
    after = activation(p.activation, output)

    def run():
        padded.fill(0)
        for image in range(p.n):
            np.copyto(inside, x[image])
            np.copyto(columns, shifted)
            products[image]()
        if p.bias:
            np.add(y, inputs[2].reshape(p.group, p.m // p.group, 1), out=y)
        for call in after:
            call()

    return run
