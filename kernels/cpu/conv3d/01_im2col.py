# op = "conv3d"
# rung = 1
# name = "im2col"
# idea = "Lays the windows of a slice of the output side by side as columns, for a product a slice and group."
"""y[n, g, :, slice] = w[g] (m / g, c / g · taps) @ the slice's windows (c / g · taps, out_h · out_w)."""

from functools import partial

import numpy as np
from numpy.lib.stride_tricks import as_strided

from kernels.cpu.common import carve, copy, product, room_elements, scratch_nbytes, sequence


def _reach(p):
    """Sizes of the padded volume: what the last windows read."""
    return tuple(
        max(size + before, (out - 1) * step + (k - 1) * d + 1)
        for size, before, out, step, k, d in zip(
            p.size, p.pad, p.out, p.stride, p.kernel, p.dilation, strict=True
        )
    )


def _shapes(p):
    area = p.out[1] * p.out[2]
    room = room_elements(p.depth, p.m // p.group, area)
    return (p.c, *_reach(p)), (p.depth, area), (p.m // p.group, area), (room,)


def workspace(p):
    return scratch_nbytes(*_shapes(p))


def bind(p, inputs, output, workspace):
    x = inputs[0].reshape(p.n, p.c, *p.size)
    weights = inputs[1].reshape(p.group, p.m // p.group, p.depth)
    y = output.reshape(p.n, p.group, p.m // p.group, p.out[0], -1)
    padded, columns, sums, room = carve(workspace, *_shapes(p))
    per_group = p.c // p.group
    inside = padded[:, *(slice(before, before + size) for before, size in zip(p.pad, p.size, strict=True))]
    calls = [partial(padded.fill, 0)]
    for n in range(p.n):
        calls.append(partial(np.copyto, inside, x[n]))
        for g in range(p.group):
            channels = padded[g * per_group : (g + 1) * per_group]
            for o in range(p.out[0]):
                seen = _windows(p, channels[:, o * p.stride[0] :])
                calls.append(copy(columns.reshape(seen.shape), seen))
                calls += product(weights[g], columns, sums, room)
                if p.bias:
                    shift = inputs[2].reshape(p.group, -1, 1)[g]
                    calls.append(partial(np.add, sums, shift, y[n, g, :, o]))
                else:
                    calls.append(partial(np.copyto, y[n, g, :, o], sums))
    return sequence(calls)


def _windows(p, x):
    """A view (c / g, kd, kh, kw, out_h, out_w) of the windows of the first slice."""
    channel, *steps = x.strides
    taps = tuple(step * d for step, d in zip(steps, p.dilation, strict=True))
    along = tuple(step * stride for step, stride in zip(steps[1:], p.stride[1:], strict=True))
    shape = (x.shape[0], *p.kernel, *p.out[1:])
    return as_strided(x, shape, (channel, *taps, *along), writeable=False)
