"""What the CPU rungs share: scratch carved into arrays, padded images, windows, activations in place."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from kernels.ops._axes import Broadcast
from kernels.ops.conv import Conv
from kernels.ops.pool import Pool

Array = np.ndarray[Any, np.dtype[Any]]
PIECE = 64  # terms of a sum that are added up before they are added to the others
FEW = 1 << 18  # sums of pieces, up to which `product` makes them: they stay in the caches
_ALIGN = 16  # float32 elements: one cache line, and the widest vector register


def scratch_nbytes(*shapes: Sequence[int]) -> int:
    """Bytes of float32 workspace that `carve` needs for arrays of these shapes."""
    return 4 * sum(-(-math.prod(shape) // _ALIGN) * _ALIGN for shape in shapes)


def carve(workspace: Array, *shapes: Sequence[int]) -> list[Array]:
    """Float32 arrays of these shapes, one after the other in the flat workspace, each on a cache line."""
    arrays, start = [], 0
    for shape in shapes:
        count = math.prod(shape)
        arrays.append(workspace[start : start + count].reshape(tuple(shape)))
        start += -(-count // _ALIGN) * _ALIGN
    return arrays


def typed_nbytes(count: int, dtype: Any) -> int:
    """Bytes of workspace that `typed` needs for so many elements."""
    return -(-count * np.dtype(dtype).itemsize // 4) * 4


def typed(workspace: Array, count: int, dtype: Any) -> Array:
    """The beginning of the flat workspace as so many elements of another type."""
    return workspace[: typed_nbytes(count, dtype) // 4].view(dtype)[:count]


def sequence(calls: Sequence[Any]) -> Any:
    """One function that makes all calls in order."""
    if len(calls) == 1:
        return calls[0]
    frozen = tuple(calls)

    def run() -> None:
        for call in frozen:
            call()

    return run


def packed_late(
    given: Array, shape: tuple[int, ...], dtype: Any, pack: Callable[[Array], Array]
) -> tuple[Array, list[Callable[[], None]]]:
    """Weights as packed arrays of this shape, and the calls that come before each pass: none where they are
    given so; else one that packs what is given, which is there at run time alone."""
    if given.shape == shape:
        return given, []
    into = np.zeros(shape, dtype)
    return into, [lambda: np.copyto(into, pack(given))]


def activation(kind: str | None, y: Array) -> list[Any]:
    """Calls that apply one of ACTIVATIONS to y in place (none for None)."""
    (y,) = merged(y)
    if kind == "relu":
        return [partial(np.maximum, y, y.dtype.type(0), out=y)]
    if kind == "relu6":
        return [
            partial(np.maximum, y, y.dtype.type(0), out=y),
            partial(np.minimum, y, y.dtype.type(6), out=y),
        ]
    if kind == "tanh":
        return [partial(np.tanh, y, y)]
    if kind == "sigmoid":
        # 1 / (1 + exp(−y)): exp overflows to infinity for y ≪ 0, whose reciprocal is the right answer, 0.
        one = y.dtype.type(1)
        return [
            partial(np.negative, y, y),
            partial(np.exp, y, y),
            partial(np.add, y, one, y),
            partial(np.reciprocal, y, y),
        ]
    return []


def product(left: Array, right: Array, into: Array, room: Array, least: int = PIECE) -> list[Any]:
    """Calls for into = left @ right, of batches too. A long sum of few outputs, which a BLAS adds up a term
    after the other, is blocked: sums of pieces of it, of no fewer than `least` terms, which lie in `room`
    (room_elements), and then these. Of many outputs a BLAS blocks the sums itself, and of one row and a
    matrix that lies along the sums it adds up as many of them at a time as a vector holds. A sum of n terms
    is off by at most (max(least, √n) + √n + 1) · 2⁻²⁴ of Σ|a·b|."""
    k = left.shape[-1]
    pieces = _pieces(k, into.size, min(into.shape[-2:]), least)
    along = into.shape[-2] == 1 and right.strides[-2] == right.itemsize and right.shape[-1] > 1
    if pieces == 1 or along or room.size < pieces * into.size:
        return [partial(np.matmul, left, right, into)]
    length = max(least, math.isqrt(k))
    whole, rest = k // length, k % length
    left = np.broadcast_to(left, (*into.shape[:-2], *left.shape[-2:]))
    right = np.broadcast_to(right, (*into.shape[:-2], *right.shape[-2:]))
    sums = room[: pieces * into.size].reshape(pieces, *into.shape)
    calls = [partial(np.matmul, _cut(left, -1, whole, length), _cut(right, -2, whole, length), sums[:whole])]
    if rest:
        calls.append(partial(np.matmul, left[..., -rest:], right[..., -rest:, :], sums[whole]))
    return [*calls, partial(np.add.reduce, sums, 0, None, into)]


def room_elements(k: int, rows: int, columns: int, batch: int = 1, least: int = PIECE) -> int:
    """Elements of scratch that `product` takes for so many outputs of k terms each."""
    outputs = batch * rows * columns
    pieces = _pieces(k, outputs, min(rows, columns), least)
    return pieces * outputs if pieces > 1 else 0


def _pieces(k: int, outputs: int, narrow: int, least: int) -> int:
    pieces = -(-k // max(least, math.isqrt(k)))
    return pieces if narrow == 1 or pieces * outputs <= FEW else 1


def _cut(of: Array, axis: int, pieces: int, length: int) -> Array:
    """A view of the axis in pieces, these first."""
    axis += of.ndim
    strides = (length * of.strides[axis], *of.strides)
    shape = (pieces, *of.shape[:axis], length, *of.shape[axis + 1 :])
    return as_strided(of, shape, strides, writeable=False)


def total(x: Array, into: Array, sums: Array) -> list[Any]:
    """Calls for the sums of x along its axis 1, blocked: of PIECE terms, which lie in sums (outer, pieces,
    …), and then of these. NumPy adds rows that lie side by side a term after the other, others in pairs."""
    if sums.shape[1] <= 1:
        return [partial(np.add.reduce, x, 1, into.dtype, into)]
    pieces = (slice(first, first + PIECE) for first in range(0, x.shape[1], PIECE))
    calls = [partial(np.add.reduce, x[:, piece], 1, into.dtype, sums[:, k]) for k, piece in enumerate(pieces)]
    return [*calls, partial(np.add.reduce, sums, 1, into.dtype, into)]


def broadcast(p: Broadcast, inputs: Sequence[Array]) -> list[Array]:
    """Views of the operands in the shape of y, with stride 0 where they are broadcast."""
    return [
        as_strided(a.reshape(-1), p.shape, [s * a.itemsize for s in strides], writeable=False)
        for a, strides in zip(inputs, p.strides, strict=True)
    ]


def copy(into: Array, source: Array) -> Any:
    """A call that copies source into `into`, both of one shape."""
    to, of = merged(into, source)
    return partial(np.copyto, to, of)


def merged(*views: Array) -> list[Array]:
    """The same elements with as few axes as their strides allow, axes merged alike in all views.

    All views have one shape. NumPy's cost of a call grows with the axes, and its inner loop is the last one.
    """
    shape = views[0].shape
    axes: list[tuple[int, list[int]]] = []  # (length, stride in each view)
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        strides = [view.strides[axis] for view in views]
        if axes and all(outer == inner * length for outer, inner in zip(axes[-1][1], strides, strict=True)):
            axes[-1] = (axes[-1][0] * length, strides)
        else:
            axes.append((length, strides))
    new_shape = tuple(length for length, _ in axes)
    return [
        as_strided(view, new_shape, tuple(strides[i] for _, strides in axes), writeable=view.flags.writeable)
        for i, view in enumerate(views)
    ]


def rows_of(views: Sequence[Array]) -> tuple[int, int, list[int]] | None:
    """(rows, columns, for each operand the elements from row to row and from column to column) of operands
    and an answer, the last of the views, of float32 and one shape. None where they are no rows whose elements
    lie side by side, or are one for a row."""
    *operands, y = merged(*views)
    if y.ndim > 2 or y.size == 0:
        return None
    strides = [s // 4 for of in operands for s in (0,) * (2 - of.ndim) + of.strides]
    shape = (1,) * (2 - y.ndim) + y.shape
    if shape[0] == 1:
        strides[::2] = [0] * len(operands)
    return (*shape, strides) if all(along in (0, 1) for along in strides[1::2]) else None


def padded_hw(p: Conv | Pool) -> tuple[int, int]:
    """Height and width of the image with its padding, and with what the last window reaches beyond it."""
    reach_h = (p.out_h - 1) * p.stride_h + (p.kh - 1) * p.dilation_h + 1
    reach_w = (p.out_w - 1) * p.stride_w + (p.kw - 1) * p.dilation_w + 1
    return max(p.h + p.pad_top + p.pad_bottom, reach_h), max(p.w + p.pad_left + p.pad_right, reach_w)


def needs_padding(p: Conv | Pool) -> bool:
    return padded_hw(p) != (p.h, p.w)


def windows(p: Conv | Pool, x: Array) -> Array:
    """A view (n, c, kh, kw, out_h, out_w) of padded images x (n, c, h, w): element (i, j) of every window."""
    n, c, _, _ = x.shape
    sn, sc, sh, sw = x.strides
    return as_strided(
        x,
        (n, c, p.kh, p.kw, p.out_h, p.out_w),
        (sn, sc, sh * p.dilation_h, sw * p.dilation_w, sh * p.stride_h, sw * p.stride_w),
        writeable=False,
    )


def interior(p: Conv | Pool, padded: Array) -> Array:
    """The view (n, c, h, w) of the padded images where the images themselves lie."""
    return padded[:, :, p.pad_top : p.pad_top + p.h, p.pad_left : p.pad_left + p.w]


def counts(p: Pool) -> Array:
    """(out_h, out_w): the elements of each window of an average that count.

    With count_include_pad those of the padded image, else those of the image itself; what ceil_mode adds
    beyond the padded image never counts. A window that holds nothing counts as 1: its average is 0, not NaN.
    """

    def along(out: int, stride: int, kernel: int, dilation: int, size: int, before: int, after: int) -> Any:
        places = np.arange(out)[:, None] * stride + np.arange(kernel) * dilation - before
        low, high = (-before, size + after) if p.count_include_pad else (0, size)
        return ((places >= low) & (places < high)).sum(axis=1)

    rows = along(p.out_h, p.stride_h, p.kh, p.dilation_h, p.h, p.pad_top, p.pad_bottom)
    columns = along(p.out_w, p.stride_w, p.kw, p.dilation_w, p.w, p.pad_left, p.pad_right)
    return np.maximum(np.outer(rows, columns), 1).astype(np.float32)
