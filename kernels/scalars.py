"""The scalar arguments of each operator's CUDA kernels, in order: the same for every rung of the op.

Sizes travel as int32, offsets and element counts that can pass 2³¹ as int64, enumerated parameters as the
codes of kernels.nvrtc. Element-wise kernels take MAX_RANK axes; here the axes that can be walked as one are
merged first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from kernels.errors import KernelError
from kernels.nvrtc import code
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

Scalar = np.int32 | np.int64 | np.float32
MAX_RANK = 6


def _conv(p: Conv) -> tuple[Scalar, ...]:
    words: tuple[int, ...] = (p.n, p.c, p.h, p.w, p.m, p.kh, p.kw, p.out_h, p.out_w, p.stride_h, p.stride_w)
    words += (p.pad_top, p.pad_left, p.dilation_h, p.dilation_w, p.group)
    return (*_int32(*words), np.int32(code("ACTIVATION", p.activation)))


def _gemm(p: Gemm) -> tuple[Scalar, ...]:
    strides = (p.bias_stride_m, p.bias_stride_n, p.stride_a, p.stride_b)
    return (
        *_int32(p.m, p.n, p.k, p.trans_a, p.trans_b),
        np.float32(p.alpha),
        np.float32(p.beta),
        *(np.int64(s) for s in strides),
        *_int32(p.batch, code("ACTIVATION", p.activation)),
    )


def _pool(p: Pool) -> tuple[Scalar, ...]:
    return (*_pooling(p), *_int32(code("ACTIVATION", p.activation)))


def _pooling(p: Pool) -> tuple[Scalar, ...]:
    words: tuple[int, ...] = (
        code("POOL", p.kind),
        p.n,
        p.c,
        p.h,
        p.w,
        p.kh,
        p.kw,
        p.out_h,
        p.out_w,
        p.stride_h,
        p.stride_w,
    )
    words += (p.pad_top, p.pad_left, p.pad_bottom, p.pad_right, p.dilation_h, p.dilation_w)
    return _int32(*words, p.count_include_pad)


def _lrn(p: Lrn) -> tuple[Scalar, ...]:
    floats = (np.float32(p.alpha / p.size), np.float32(p.beta), np.float32(p.bias))
    return (*_int32(p.n, p.c), np.int64(p.inner), *_int32(p.size), *floats)


def _lrn_pool(p: LrnPool) -> tuple[Scalar, ...]:
    return (*_pooling(p.pool), *_lrn(p.lrn)[3:])


def _conv_pool(p: ConvPool) -> tuple[Scalar, ...]:
    q = p.pool
    words: tuple[int, ...] = (code("POOL", q.kind), q.kh, q.kw, q.out_h, q.out_w, q.stride_h, q.stride_w)
    words += (q.pad_top, q.pad_left, q.pad_bottom, q.pad_right, q.dilation_h, q.dilation_w)
    return (*_conv(p.conv), *_int32(*words, q.count_include_pad, code("ACTIVATION", q.activation)))


def _softmax(p: Softmax) -> tuple[Scalar, ...]:
    return (np.int64(p.outer), *_int32(p.axis), np.int64(p.inner), *_int32(p.log))


def _unary(p: Unary) -> tuple[Scalar, ...]:
    return (np.int64(p.size), np.int32(code("UNARY", p.kind)))


def _binary(p: Binary) -> tuple[Scalar, ...]:
    dims, (a, b) = merge_axes(p.shape, (p.strides_a, p.strides_b))
    tail = _int32(code("BINARY", p.kind), code("ACTIVATION", p.activation))
    return (np.int64(p.size), *_axes(p, dims, a, b), *tail)


def walks(p: Transpose) -> tuple[list[int], list[int]]:
    """Sizes of y's axes after merging, and the strides of x along them."""
    strides = _contiguous(p.shape)
    dims, (source,) = merge_axes([p.shape[a] for a in p.perm], ([strides[a] for a in p.perm],))
    return dims, source


def _transpose(p: Transpose) -> tuple[Scalar, ...]:
    dims, source = walks(p)
    return (np.int64(math.prod(p.shape)), *_axes(p, dims, source))


def _pad(p: Pad) -> tuple[Scalar, ...]:
    sizes, begin, out = _merge_unpadded(p)
    strides = _contiguous(sizes)
    if any(d < 0 for d in out):
        raise KernelError(f"{p} would cut away more than there is")
    axes = (_lead(out, 1), _lead(sizes, 1), _lead(begin, 0), _lead(strides, 0))
    if len(out) > MAX_RANK:
        raise KernelError(f"{p} has {len(out)} axes after merging, and pad takes up to {MAX_RANK}")
    flat = (np.int64(v) for axis in axes for v in axis)
    return (np.int64(math.prod(out)), *flat, np.int32(code("PAD", p.mode)), np.float32(p.value))


def _cast(p: Cast) -> tuple[Scalar, ...]:
    return (np.int64(p.size), *_int32(code("DTYPE", p.dtype), code("DTYPE", p.to)))


SCALARS: dict[str, Callable[..., tuple[Scalar, ...]]] = {
    "conv": _conv,
    "gemm": _gemm,
    "pool": _pool,
    "lrn": _lrn,
    "lrn_pool": _lrn_pool,
    "conv_pool": _conv_pool,
    "softmax": _softmax,
    "unary": _unary,
    "binary": _binary,
    "transpose": _transpose,
    "pad": _pad,
    "cast": _cast,
}


def merge_axes(dims: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Drop axes of one element and merge neighbours that every operand walks as one: the same elements in the
    same order with the fewest axes. Strides are elements a step."""
    out: list[int] = []
    walks: list[list[int]] = [[] for _ in strides]
    for axis, size in enumerate(dims):
        if size == 1:
            continue
        steps = [s[axis] for s in strides]
        if out and all(walk[-1] == step * size for walk, step in zip(walks, steps, strict=True)):
            out[-1] *= size
            for walk, step in zip(walks, steps, strict=True):
                walk[-1] = step
        else:
            out.append(size)
            for walk, step in zip(walks, steps, strict=True):
                walk.append(step)
    return out, walks


def _merge_unpadded(p: Pad) -> tuple[list[int], list[int], list[int]]:
    """Input sizes, begins and output sizes; neighbours that are both left as they are become one axis."""
    sizes: list[int] = []
    begins: list[int] = []
    outs: list[int] = []
    for size, begin, out, end in zip(p.shape, p.begin, p.out_shape, p.end, strict=True):
        whole = begin == 0 and end == 0
        if whole and sizes and begins[-1] == 0 and sizes[-1] == outs[-1]:
            sizes[-1] *= size
            outs[-1] *= size
        else:
            sizes.append(size)
            begins.append(begin)
            outs.append(out)
    return sizes, begins, outs


def _axes(p: Params, dims: Sequence[int], *walks: Sequence[int]) -> tuple[np.int64, ...]:
    """Sizes and strides filled up in front to MAX_RANK axes, for kernels that take a fixed number of them."""
    if len(dims) > MAX_RANK:
        raise KernelError(f"{p} has {len(dims)} axes after merging, and {p.op} takes up to {MAX_RANK}")
    rows = [_lead(dims, 1)] + [_lead(walk, 0) for walk in walks]
    return tuple(np.int64(v) for row in rows for v in row)


def _lead(values: Sequence[int], fill: int) -> list[int]:
    return [fill] * (MAX_RANK - len(values)) + list(values)


def _contiguous(dims: Sequence[int]) -> list[int]:
    return [math.prod(dims[i + 1 :]) for i in range(len(dims))]


def _int32(*values: int) -> tuple[np.int32, ...]:
    for value in values:
        if not -(2**31) <= value < 2**31:
            raise KernelError(f"a kernel takes sizes below 2³¹, and {value} is not")
    return tuple(np.int32(v) for v in values)
