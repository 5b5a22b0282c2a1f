# op = "lrn_pool"
# rung = 1
# name = "image_by_image"
# idea = "Normalises one image into scratch and pools it while it is still in the cache."
"""The best rungs of both operators, bound to one image at a time; the normalised image is the scratch's."""

from dataclasses import replace

from kernels import registry
from kernels.cpu import load
from kernels.cpu.common import carve, scratch_nbytes, sequence


def _halves(p):
    """(kernel, params of one image) of both operators."""
    one = replace(p, n=1)
    return [(load(registry.default("cpu", half)), half) for half in (one.lrn, one.pool)]


def _shapes(p):
    """The normalised image, and what either half needs, the same bytes for both."""
    return (p.c, p.h, p.w), (max(kernel.workspace(half) for kernel, half in _halves(p)) // 4,)


def workspace(p):
    return scratch_nbytes(*_shapes(p))


def bind(p, inputs, output, workspace):
    x = inputs[0].reshape(p.n, p.c, p.h, p.w)
    y = output.reshape(p.n, p.c, p.out_h, p.out_w)
    (lrn, first), (pool, second) = _halves(p)
    normal, scratch = carve(workspace, *_shapes(p))
    calls = []
    for image, pooled in zip(x, y, strict=True):
        calls.append(lrn.bind(first, [image], normal, scratch))
        calls.append(pool.bind(second, [normal], pooled, scratch))
    return sequence(calls)
