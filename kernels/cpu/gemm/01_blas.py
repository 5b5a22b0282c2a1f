# op = "gemm"
# rung = 1
# name = "blas"
# idea = "Leaves the product to BLAS, which reads transposed matrices as they lie, and finishes in place."
# [needs]
# activation = ["none", "relu", "tanh", "sigmoid", "relu6"]
# dtype = ["float32", "float64"]
"""y = activation(alpha · a @ b + beta · bias), the product by sgemm straight into y; long sums of few
outputs in pieces (kernels.cpu.common.product, which says how exact they are)."""

from functools import partial

import numpy as np
from numpy.lib.stride_tricks import as_strided

from kernels.cpu.common import activation, merged, product, room_elements, sequence, typed, typed_nbytes

LEAST = 256  # terms that are left to BLAS as they are: calls for fewer cost more than the product


def _room(p):
    return room_elements(p.k, p.m, p.n, p.batch, LEAST)


def workspace(p):
    return typed_nbytes(_room(p), p.dtype)


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(-1), inputs[1].reshape(-1)
    y = output.reshape(p.batch, p.m, p.n)
    a = _matrices(a, p.batch, p.stride_a, p.m, p.k, p.trans_a)
    b = _matrices(b, p.batch, p.stride_b, p.k, p.n, p.trans_b)
    room = typed(workspace, _room(p), p.dtype)
    calls = product(*((a[0], b[0], y[0]) if p.batch == 1 else (a, b, y)), room, LEAST)
    scalar = y.dtype.type
    if p.alpha != 1:
        calls.append(partial(np.multiply, y, scalar(p.alpha), y))
    if p.bias:
        bias = inputs[2].reshape(-1)
        if p.beta != 1:
            scaled = np.empty_like(bias)
            calls.append(partial(np.multiply, bias, scalar(p.beta), scaled))
            bias = scaled
        item = bias.itemsize
        shift = as_strided(
            bias, y.shape, (0, p.bias_stride_m * item, p.bias_stride_n * item), writeable=False
        )
        into, seen = merged(y, shift)
        calls.append(partial(np.add, into, seen, into))
    return sequence(calls + activation(p.activation, y))


def _matrices(flat, batch, stride, rows, columns, transposed):
    """A view (batch, rows, columns) of a flat array that holds each matrix as it is or transposed."""
    if transposed:
        rows, columns = columns, rows
    item = flat.itemsize
    view = as_strided(flat, (batch, rows, columns), (stride * item, columns * item, item), writeable=False)
    return view.transpose(0, 2, 1) if transposed else view
