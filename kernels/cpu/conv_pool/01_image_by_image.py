# op = "conv_pool"
# rung = 1
# name = "image_by_image"
# idea = "Convolves one image into scratch and pools it while it is still in the cache."
"""The best rungs of both operators, bound to one image at a time; what lies between is the scratch's."""

from kernels import registry
from kernels.cpu import load
from kernels.cpu.common import carve, scratch_nbytes, sequence


def _halves(p):
    """(kernel, params of one image) of both operators."""
    one = p.of_images(1)
    return [(load(registry.default("cpu", half)), half) for half in (one.conv, one.pool)]


def _shapes(p):
    """What the convolution gives of one image, and what either half needs, the same bytes for both."""
    maps = (p.m, p.conv.out_h, p.conv.out_w)
    return maps, (max(kernel.workspace(half) for kernel, half in _halves(p)) // 4,)


def workspace(p):
    return scratch_nbytes(*_shapes(p))


def pack(p, inputs):
    (conv, one), _ = _halves(p)
    return conv.pack(one, inputs)


def bind(p, inputs, output, workspace):
    x = inputs[0].reshape(p.n, p.c, p.conv.h, p.conv.w)
    y = output.reshape(p.n, p.m, p.pool.out_h, p.pool.out_w)
    (conv, first), (pool, second) = _halves(p)
    maps, scratch = carve(workspace, *_shapes(p))
    calls = []
    for image, pooled in zip(x, y, strict=True):
        calls.append(conv.bind(first, [image, *inputs[1:]], maps, scratch))
        calls.append(pool.bind(second, [maps], pooled, scratch))
    return sequence(calls)
