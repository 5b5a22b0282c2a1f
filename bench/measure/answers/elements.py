"""Single elements of an answer in float64, each computed on its own from the inputs on which it depends.

Of one large image the oracle takes minutes; some hundred elements, drawn when the pass is over, take
milliseconds, and a kernel that leaves some out cannot know which are looked at. Operators that `at_places`
knows have it, and those that work out every element by itself. `bench.judge.trial` looks at whole rows of the
others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch

import numpy as np

from bench.measure.answers import one_node
from kernels.ops import Params
from kernels.ops._quantized import Quantized
from kernels.ops.attention import Attention
from kernels.ops.conv import Conv
from kernels.ops.conv3d import Conv3d
from kernels.ops.conv_pool import ConvPool
from kernels.ops.conv_transpose import ConvTranspose
from kernels.ops.gemm import Gemm
from kernels.ops.qconv import QConv
from kernels.ops.qgemm import QGemm

# So many that a kernel which leaves out one in sixty is found with p > 0.999, wherever these are: (59/60)^420
# is 0.0009. Further ones lie at the ends of the axes, where tiles are not whole.
DRAWN, AT_EDGES = 420, 30
# Terms that are gathered at once: little enough to stay in the caches.
TERMS = 1 << 18
Taps = tuple[np.ndarray, np.ndarray]


@singledispatch
def at_places(p: Params, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    """Float64 (count,) at flat places of y. Raises TypeError for an operator whose elements cannot be had
    without the others."""
    raise TypeError(f"single elements of {p.op} are not known")


def known(p: Params) -> bool:
    """Whether single elements can be had of this operator."""
    return _is_known(p) or _each_alone(p)


def _is_known(p: Params) -> bool:
    return at_places.dispatch(type(p)) is not at_places.dispatch(Params)


def answer(p: Params, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    """Float64 (count,): what `inputs`, weights among them, give at these flat places of y."""
    if not _is_known(p):
        cut = p.division.cut(len(places))
        shapes = cut.input_shapes
        few = [array.reshape(-1)[places].reshape(shapes[i]) for i, array in enumerate(inputs)]
        return one_node.answer(cut, few).reshape(-1)
    step = max(1, TERMS // max(1, p.flops // (2 * max(1, p.outputs))))
    pieces = [places[start : start + step] for start in range(0, len(places), step)]
    with np.errstate(over="ignore"):
        return np.concatenate([at_places(p, inputs, piece) for piece in pieces])


def drawn(shape: Sequence[int], random: np.random.Generator) -> np.ndarray:
    """Flat places of a tensor: DRAWN alike among all, and AT_EDGES at the ends of one axis or several; all of
    a small one."""
    size = math.prod(shape)
    if size <= DRAWN + AT_EDGES:
        return np.arange(size)
    at = [random.integers(0, length, AT_EDGES) for length in shape]
    ends = [np.where(random.random(AT_EDGES) < 0.5, 0, length - 1) for length in shape]
    moved = random.random((len(shape), AT_EDGES)) < 0.5
    index = tuple(np.where(there, end, place) for there, end, place in zip(moved, ends, at, strict=True))
    return np.concatenate([random.integers(0, size, DRAWN), np.ravel_multi_index(index, tuple(shape))])


def _each_alone(p: Params) -> bool:
    """Whether an element of y hangs on the element of each input at its place alone."""
    units = p.division
    alone = units.length == p.outputs and units.output == 1 and set(units.inputs) == {1}
    return alone and all(units.cut(count).outputs == count for count in (1, 3))


def _activated(values: np.ndarray, kind: str | None) -> np.ndarray:
    """An activation of float64 values."""
    if kind is None:
        return values
    if kind == "tanh":
        return np.tanh(values)
    if kind == "sigmoid":
        return np.exp(-np.logaddexp(0.0, -values))
    if kind == "gelu":
        return np.array([v * math.erfc(-v / math.sqrt(2)) / 2 for v in values.tolist()])
    if kind == "gelu_tanh":
        return values * (1 + np.tanh(math.sqrt(2 / math.pi) * (values + 0.044715 * values**3))) / 2
    return np.clip(values, 0.0, 6.0 if kind == "relu6" else None)


def _reached(place: np.ndarray, size: int, kernel: int, stride: int, pad: int, dilation: int) -> Taps:
    """Of one axis: where the taps of the windows of these outputs lie, (count, kernel), and which of them lie
    within."""
    at = place[:, None] * stride - pad + np.arange(kernel) * dilation
    inside = (at >= 0) & (at < size)
    return np.where(inside, at, 0), inside


@at_places.register
def _conv(p: Conv, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    return _conv_at(p, inputs, *np.unravel_index(places, p.output_shape))


def _conv_at(
    p: Conv, inputs: Sequence[np.ndarray], n: np.ndarray, m: np.ndarray, row: np.ndarray, column: np.ndarray
) -> np.ndarray:
    """Float64 (count,): the outputs of these images, maps, rows and columns, each a sum of its own."""
    x, weights = inputs[0].reshape(p.input_shapes[0]), inputs[1].reshape(p.input_shapes[1])
    high, above = _reached(row, p.h, p.kh, p.stride_h, p.pad_top, p.dilation_h)
    wide, beside = _reached(column, p.w, p.kw, p.stride_w, p.pad_left, p.dilation_w)
    depth = p.c // p.group
    channels = (m // (p.m // p.group) * depth)[:, None] + np.arange(depth)
    read = x[n[:, None, None, None], channels[:, :, None, None], high[:, None, :, None], wide[:, None, None]]
    inside = above[:, None, :, None] & beside[:, None, None]
    sums = (np.where(inside, read, 0).astype(np.float64) * weights[m]).sum(axis=(1, 2, 3))
    return _activated(sums + inputs[2][m] if p.bias else sums, p.activation)


@at_places.register
def _conv_pool(p: ConvPool, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    """All of the convolution under a window, and what the pool makes of it: an average counts padding where
    it is asked to, and never what lies beyond that."""
    pool = p.pool
    n, m, row, column = np.unravel_index(places, p.output_shape)
    high, above = _reached(row, pool.h, pool.kh, pool.stride_h, pool.pad_top, pool.dilation_h)
    wide, beside = _reached(column, pool.w, pool.kw, pool.stride_w, pool.pad_left, pool.dilation_w)
    shape = (len(places), pool.kh, pool.kw)
    window = (n[:, None, None], m[:, None, None], high[:, :, None], wide[:, None])
    flat = (np.broadcast_to(index, shape).reshape(-1) for index in window)
    values = _conv_at(p.conv, inputs, *flat).reshape(shape)
    inside = above[:, :, None] & beside[:, None]
    if pool.kind == "max":
        return _activated(np.where(inside, values, -np.inf).max(axis=(1, 2)), pool.activation)
    counted = inside
    if pool.count_include_pad:
        rows = row[:, None] * pool.stride_h + np.arange(pool.kh) * pool.dilation_h
        columns = column[:, None] * pool.stride_w + np.arange(pool.kw) * pool.dilation_w
        counted = (rows < pool.h + pool.pad_top + pool.pad_bottom)[:, :, None] & (
            columns < pool.w + pool.pad_left + pool.pad_right
        )[:, None]
    sums = np.where(inside, values, 0).sum(axis=(1, 2))
    return _activated(sums / np.maximum(counted.sum(axis=(1, 2)), 1), pool.activation)


@at_places.register
def _conv3d(p: Conv3d, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    x, weights = inputs[0].reshape(p.input_shapes[0]), inputs[1].reshape(p.input_shapes[1])
    n, m, *at = np.unravel_index(places, p.output_shape)
    axes = zip(at, p.size, p.kernel, p.stride, p.pad, p.dilation, strict=True)
    (deep, above), (high, over), (wide, beside) = (_reached(*axis) for axis in axes)
    depth = p.c // p.group
    channels = (m // (p.m // p.group) * depth)[:, None] + np.arange(depth)
    read = x[
        n[:, None, None, None, None],
        channels[:, :, None, None, None],
        deep[:, None, :, None, None],
        high[:, None, None, :, None],
        wide[:, None, None, None],
    ]
    inside = above[:, None, :, None, None] & over[:, None, None, :, None] & beside[:, None, None, None]
    sums = (np.where(inside, read, 0).astype(np.float64) * weights[m]).sum(axis=(1, 2, 3, 4))
    return sums + inputs[2][m] if p.bias else sums


@at_places.register
def _conv_transpose(p: ConvTranspose, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    """An output gathers what the elements of x within reach add to it."""
    x, weights = inputs[0].reshape(p.input_shapes[0]), inputs[1].reshape(p.input_shapes[1])
    n, m, row, column = np.unravel_index(places, p.output_shape)
    high, above = _added(row + p.pad_top, p.h, p.kh, p.stride_h, p.dilation_h)
    wide, beside = _added(column + p.pad_left, p.w, p.kw, p.stride_w, p.dilation_w)
    depth, maps = p.c // p.group, p.m // p.group
    channels = (m // maps * depth)[:, None] + np.arange(depth)
    read = x[n[:, None, None, None], channels[:, :, None, None], high[:, None, :, None], wide[:, None, None]]
    inside = above[:, None, :, None] & beside[:, None, None]
    sums = (np.where(inside, read, 0).astype(np.float64) * weights[channels, (m % maps)[:, None]]).sum(
        axis=(1, 2, 3)
    )
    return sums + inputs[2][m] if p.bias else sums


def _added(place: np.ndarray, size: int, kernel: int, stride: int, dilation: int) -> Taps:
    """Of one axis: which element adds to these places by each tap, (count, kernel), and where one does."""
    at, left = np.divmod(place[:, None] - np.arange(kernel) * dilation, stride)
    inside = (left == 0) & (at >= 0) & (at < size)
    return np.where(inside, at, 0), inside


@at_places.register
def _gemm(p: Gemm, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    a, b = (array.reshape(shape) for array, shape in zip(inputs, p.input_shapes[:2], strict=False))
    batch, row, column = np.unravel_index(places, p.output_shape)
    of_a, of_b = (batch if len(array) > 1 else np.zeros_like(batch) for array in (a, b))
    left = a[of_a, :, row] if p.trans_a else a[of_a, row]
    right = b[of_b, column] if p.trans_b else b[of_b, :, column]
    found = p.alpha * np.einsum("ij,ij->i", left, right, dtype=np.float64)
    if p.bias:
        bias = inputs[2].reshape(p.input_shapes[2])
        found += p.beta * bias[row if len(bias) > 1 else 0, column if bias.shape[1] > 1 else 0]
    return _activated(found, p.activation)


@at_places.register
def _attention(p: Attention, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    q, k, v, *masks = p.apart(inputs)
    image, second, third, element = np.unravel_index(places, p.output_shape)
    head, query = (third, second) if p.swapped[3] else (second, third)
    of = head // (p.heads // p.kv_heads)
    scores = p.scale * np.einsum("ie,ije->ij", q[image, head, query], k[image, of], dtype=np.float64)
    if p.softcap:
        scores = p.softcap * np.tanh(scores / p.softcap)
    if p.mask:
        mask = np.broadcast_to(masks[0].reshape(p.mask), (p.batch, p.heads, p.queries, p.keys))
        scores = scores + mask[image, head, query]
    away = np.arange(p.keys) - query[:, None]
    scores = np.where((away < p.earliest) | (away > p.latest), -np.inf, scores)
    most = scores.max(axis=1, keepdims=True)
    powers = np.exp(scores - np.where(np.isneginf(most), 0, most))
    weights = powers.sum(axis=1)
    if p.guarded:
        weights = np.where(weights == 0, 1, weights)
    with np.errstate(invalid="ignore"):
        found = np.einsum("ij,ij->i", powers, v[image, of, :, element], dtype=np.float64) / weights
    return np.asarray(found)


def _rescaled(
    p: Quantized, sums: np.ndarray, channels: np.ndarray, behind: Sequence[np.ndarray]
) -> np.ndarray:
    """Float64: the answer out of sums, each of one of the channels."""
    if p.to == "int32":
        return sums
    bias, scale, *shift = (array.reshape(-1)[channels] for array in behind)
    real = (sums + bias) * scale
    real = real + shift[0] if shift else real
    if p.to == "float32":
        return real
    return np.clip(np.rint(real / np.float32(p.out_scale)) + p.out_zero, p.low, p.high)


@at_places.register
def _qconv(p: QConv, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    at = np.unravel_index(places, p.output_shape)
    weights = inputs[1].reshape(p.product.m, -1).astype(np.int64) - inputs[3].reshape(-1, 1).astype(np.int64)
    less = [inputs[0].astype(np.int64) - inputs[2].astype(np.int64), weights]
    return _rescaled(p, _conv_at(p.product, less, *at), at[1], inputs[4:])


@at_places.register
def _qgemm(p: QGemm, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    column = np.unravel_index(places, p.output_shape)[2]
    zeros = inputs[3].astype(np.int64).reshape((1, -1, 1) if p.product.trans_b else (1, 1, -1))
    b = inputs[1].reshape(p.input_shapes[1]).astype(np.int64) - zeros
    less = [inputs[0].astype(np.int64) - inputs[2].astype(np.int64), b]
    return _rescaled(p, at_places(p.product, less, places), column, inputs[4:])
