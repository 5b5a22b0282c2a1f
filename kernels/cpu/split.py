"""How a step divides among threads: into parts along an axis whose elements do not depend on each other.

A part is the same operator on less: params of its own, and where its inputs and output lie in the whole ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kernels.params import (
    Binary,
    Cast,
    Conv,
    ConvPool,
    Gemm,
    Lrn,
    LrnPool,
    Pad,
    Params,
    Pool,
    Softmax,
    Transpose,
    Unary,
)

PARTS_A_THREAD = 2  # more than one, so that a thread that is held up leaves work to the others

Range = tuple[int, int]
"""First element and the one after the last, counted in the dense array."""


@dataclass(frozen=True)
class Part:
    """params: what this part is told; inputs: the range it reads of each input (None: all of it); output: the
    range it writes, which no other part writes. columns: the output range is of columns, of every row of a
    matrix product, and so not dense."""

    params: Params
    inputs: tuple[Range | None, ...]
    output: Range
    columns: bool = False


@dataclass(frozen=True)
class _Axis:
    """length: independent units; inputs, output: elements a unit in each array (0: every part reads it all).

    cut: params of so many units. repeats: a part repeats work of its neighbours, so there are no more of them
    than threads. columns: as in Part.
    """

    length: int
    inputs: tuple[int, ...]
    output: int
    cut: Callable[[int], Params]
    repeats: bool = False
    columns: bool = False


def parts(p: Params, threads: int) -> tuple[Part, ...]:
    """Parts of about one size for so many threads that together do what `p` says; one part is `p` itself."""
    axis = _axis(p)
    wanted = threads if axis.repeats or threads == 1 else PARTS_A_THREAD * threads
    count = max(1, min(wanted, axis.length))
    if count == 1:
        return (whole(p),)
    found = []
    bounds = [axis.length * i // count for i in range(count + 1)]
    for low, high in itertools.pairwise(bounds):
        ranges = tuple((low * unit, high * unit) if unit else None for unit in axis.inputs)
        output = (low * axis.output, high * axis.output)
        found.append(Part(axis.cut(high - low), ranges, output, axis.columns))
    return tuple(found)


def whole(p: Params) -> Part:
    """All of `p` as one part."""
    axis = _axis(p)
    return Part(p, (None,) * len(axis.inputs), (0, axis.length * axis.output))


def ranged(arrays: Sequence[object], part: Part) -> bool:
    """Whether the part reads less than all of any of the arrays that are not None."""
    pairs = zip(arrays, part.inputs, strict=True)
    return any(array is not None and span is not None for array, span in pairs)


def _axis(p: Params) -> _Axis:
    if isinstance(p, Conv):
        return _conv_axis(p)
    if isinstance(p, Gemm):
        return _gemm_axis(p)
    if isinstance(p, Pool):
        planes = p.n * p.c
        return _Axis(planes, (p.h * p.w,), p.out_h * p.out_w, lambda count: replace(p, n=count, c=1))
    if isinstance(p, Lrn):
        image = p.c * p.inner
        return _Axis(p.n, (image,), image, lambda count: replace(p, n=count))
    if isinstance(p, LrnPool):
        outputs = p.c * p.out_h * p.out_w
        return _Axis(p.n, (p.c * p.h * p.w,), outputs, lambda count: replace(p, n=count))
    if isinstance(p, ConvPool):
        inputs = (p.image, 0) + (0,) * p.bias
        return _Axis(p.n, inputs, p.outputs // p.n, p.of_images)
    if isinstance(p, Softmax):
        row = p.axis * p.inner
        return _Axis(p.outer, (row,), row, lambda count: replace(p, outer=count))
    if isinstance(p, Unary | Cast):
        return _Axis(p.size, (1,), 1, lambda count: replace(p, size=count))
    if isinstance(p, Binary):
        leading = tuple(strides[0] if strides else 0 for strides in (p.strides_a, p.strides_b))
        return _Axis(p.shape[0] if p.shape else 1, leading, math.prod(p.shape[1:]), _shorter(p))
    inner = math.prod(p.shape[1:])
    if isinstance(p, Transpose) and p.perm[:1] == (0,):
        return _Axis(p.shape[0], (inner,), inner, _shorter(p))
    if isinstance(p, Pad) and p.shape and p.begin[0] == p.end[0] == 0:
        return _Axis(p.shape[0], (inner,), math.prod(p.out_shape[1:]), _shorter(p))
    elements = math.prod(p.out_shape if isinstance(p, Pad) else p.shape)
    return _Axis(1, (0,), elements, lambda _: p)


def _shorter(p: Binary | Transpose | Pad) -> Callable[[int], Params]:
    return lambda count: replace(p, shape=(count, *p.shape[1:]))


def _conv_axis(p: Conv) -> _Axis:
    image, filters, positions = p.c * p.h * p.w, p.m // p.group, p.out_h * p.out_w
    depth = p.c // p.group
    if p.n > 1:
        inputs = (image, 0) + (0,) * p.bias
        return _Axis(p.n, inputs, p.m * positions, lambda count: replace(p, n=count))
    weights = filters * depth * p.kh * p.kw
    if p.group > 1:
        inputs = (image // p.group, weights) + (filters,) * p.bias
        return _Axis(
            p.group,
            inputs,
            filters * positions,
            lambda count: replace(p, group=count, c=count * depth, m=count * filters),
        )
    # Every part lays out the same columns, each for its own filters.
    inputs = (0, weights // p.m) + (1,) * p.bias
    return _Axis(p.m, inputs, positions, lambda count: replace(p, m=count), repeats=True)


def _gemm_axis(p: Gemm) -> _Axis:
    none = (0,) * p.bias
    if p.batch > 1:
        inputs = (p.stride_a, p.stride_b, *none)
        return _Axis(p.batch, inputs, p.m * p.n, lambda count: replace(p, batch=count))
    bias = (p.bias_stride_m, p.bias_stride_n)
    # Parts by rows read all of b, parts by columns all of a: the smaller one is read again.
    by_columns = p.n > p.m and p.trans_b and p.dtype == "float32"
    if by_columns and (not p.bias or bias in ((0, 0), (0, 1))):
        inputs = (0, p.k) + (p.bias_stride_n,) * p.bias
        return _Axis(p.n, inputs, 1, lambda count: replace(p, n=count), columns=True)
    if not p.trans_a and p.n * p.k <= p.m * (p.n + p.k) and (not p.bias or bias in ((0, 0), (0, 1), (1, 0))):
        inputs = (p.k, 0) + (p.bias_stride_m,) * p.bias
        return _Axis(p.m, inputs, p.n, lambda count: replace(p, m=count))
    return _Axis(1, (0, 0, *none), p.m * p.n, lambda _: p)
