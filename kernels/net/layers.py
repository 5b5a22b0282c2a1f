"""The steps that can be part of one kernel, and what each does to one image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernels.ops import ACTIVATIONS, GELUS, Params
from kernels.ops.conv import Conv
from kernels.ops.conv_pool import ConvPool
from kernels.ops.gemm import Gemm
from kernels.ops.pool import Pool
from kernels.ops.softmax import Softmax
from kernels.ops.unary import Unary

MOST_WINDOW = 16  # pixels of a window, which are written out in the kernel's text, along an axis
MOST_SUMS = 64  # of a thread

Extent = tuple[int, int, int]  # channels, rows, columns


@dataclass(frozen=True)
class Layer:
    """A step for one image, or a part of a step. params: those of one image; pool: the pool that follows the
    convolution in the same layer; step: index of the step in the run; takes, gives: (channels, rows, columns)
    of input and output."""

    params: Params
    takes: Extent
    gives: Extent
    pool: Pool | None = None
    step: int = 0

    @property
    def size(self) -> int:
        """Number of output values."""
        return math.prod(self.gives)


def layers(steps: Sequence[Params], batch: int) -> tuple[Layer, ...]:
    """The layers of these steps, each of which reads the output of the step before. A pool whose windows do
    not overlap becomes part of the convolution before it, whether they are one step or two. Raises ValueError
    with the reason where the steps cannot be one kernel."""
    chain: list[Layer] = []
    for i, params in enumerate(steps):
        for layer in _of(params, batch):
            before = chain[-1] if chain else None
            if before is not None and math.prod(layer.takes) != before.size:
                raise ValueError(f"{params.op} reads another number of values than the step before gives")
            windowed = isinstance(layer.params, Conv | Pool)
            if before is not None and windowed and before.gives[1:] != (1, 1) and before.gives != layer.takes:
                raise ValueError(f"{params.op} reads its images in another shape than they are made in")
            pool = layer.params
            if before is not None and isinstance(pool, Pool) and _ends_in(before, pool):
                chain[-1] = replace(before, gives=layer.gives, pool=pool)
            else:
                chain.append(replace(layer, step=i))
    return tuple(chain)


def _ends_in(before: Layer, pool: Pool) -> bool:
    """Whether `before` is a convolution that can include this pool."""
    return isinstance(before.params, Conv) and before.pool is None and _side_by_side(pool)


def _of(params: Params, batch: int) -> tuple[Layer, ...]:
    if getattr(params, "dtype", "") != "float32" or params.out_dtype != "float32":
        raise ValueError(f"{params.op} is not of float32")
    if isinstance(params, ConvPool) and params.n == batch:
        (conv,) = _conv(params.conv)
        if _side_by_side(params.pool):
            gives = (params.m, params.pool.out_h, params.pool.out_w)
            return (replace(conv, gives=gives, pool=replace(params.pool, n=1)),)
        return (conv, _pool(params.pool))
    if isinstance(params, Conv) and params.n == batch:
        return _conv(params)
    if isinstance(params, Pool) and params.n == batch:
        return (_pool(params),)
    if isinstance(params, Gemm) and params.m == batch:
        plain = not params.trans_a and params.batch == 1 and params.alpha == 1 and not params.bias_stride_m
        if not plain or params.activation in GELUS:
            raise ValueError("a product of another form than images by weights")
        return (Layer(replace(params, m=1), (params.k, 1, 1), (params.n, 1, 1)),)
    if isinstance(params, Softmax) and params.outer == batch and params.inner == 1:
        return (Layer(replace(params, outer=1), (params.axis, 1, 1), (params.axis, 1, 1)),)
    if isinstance(params, Unary) and params.size % batch == 0 and params.kind in (*ACTIVATIONS, "identity"):
        size = params.size // batch
        return (Layer(replace(params, size=size), (size, 1, 1), (size, 1, 1)),)
    raise ValueError(f"{params.op} of this form is no part of one kernel")


def _conv(p: Conv) -> tuple[Layer]:
    if max(p.kh, p.kw) > MOST_WINDOW:
        raise ValueError(f"a window of {p.kh}×{p.kw} is too large")
    return (Layer(replace(p, n=1), (p.c, p.h, p.w), (p.m, p.out_h, p.out_w)),)


def _pool(p: Pool) -> Layer:
    if max(p.kh, p.kw) > MOST_WINDOW:
        raise ValueError(f"a window of {p.kh}×{p.kw} is too large")
    return Layer(replace(p, n=1), (p.c, p.h, p.w), (p.c, p.out_h, p.out_w))


def _side_by_side(p: Pool) -> bool:
    """Whether each pixel is in at most one window, and every window lies inside the image."""
    alone = (p.kh, p.kw, 1, 1) == (p.stride_h, p.stride_w, p.dilation_h, p.dilation_w)
    within = p.out_h * p.kh <= p.h and p.out_w * p.kw <= p.w and not p.pad_top and not p.pad_left
    return alone and within and p.kh * p.kw <= MOST_SUMS // 4
