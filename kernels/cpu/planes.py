"""Where the vectors of a plane's outputs begin, and what their windows see of the plane: the tables of rungs
that read windows where they lie (kernels.cpu.windows), and the room around a plane that they read.

Where an image is as wide as its answer, outputs of several rows are one vector, for their windows lie as far
apart as they do; else a vector has outputs of one row.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from kernels.cpu import simd
from kernels.cpu.common import Array
from kernels.cpu.compiled import inlined


@cache
def vectors(c: Any, lanes: int) -> tuple[Array, Array, Array]:
    """Of each vector of up to so many outputs of a plane: where the first element of its first window lies
    in the image, which may be before it; its first output; how many it has. c: a convolution or a pool."""
    if c.out_w == c.w and c.stride_h == c.stride_w == 1:
        begins = np.arange(0, c.out_h * c.out_w, lanes)
        counts = np.minimum(lanes, c.out_h * c.out_w - begins)
    else:
        columns = np.arange(0, c.out_w, lanes)
        begins = (np.arange(c.out_h)[:, None] * c.out_w + columns).reshape(-1)
        counts = np.tile(np.minimum(lanes, c.out_w - columns), c.out_h)
    row, column = np.divmod(begins, c.out_w)
    at = (row * c.stride_h - c.pad_top) * c.w + column * c.stride_w - c.pad_left
    return at, begins, counts


def inside(c: Any, lanes: int, rows: Array, columns: Array) -> Array:
    """(vectors, taps, lanes): of each output, whether these taps of its window are within the image; false of
    what is no output. rows, columns: of the taps, (taps,), in elements of the image."""
    _, begins, counts = vectors(c, lanes)
    lane = np.arange(lanes)
    output = begins[:, None] + lane
    down = (output // c.out_w * c.stride_h - c.pad_top)[:, None] + rows[:, None]
    across = (output % c.out_w * c.stride_w - c.pad_left)[:, None] + columns[:, None]
    held: Array = (down >= 0) & (down < c.h) & (across >= 0) & (across < c.w)
    return held & (lane < counts[:, None])[:, None]


def told(c: Any, lanes: int, seen: Array) -> Array:
    """The table of int64, a row a vector: `vectors`, then 64 bits for each tap. seen: (vectors, taps, 64)."""
    bits = np.packbits(seen, axis=-1, bitorder="little").view("<i8")[..., 0]
    return np.ascontiguousarray(np.concatenate([np.stack(vectors(c, lanes), axis=1), bits], axis=1), np.int64)


@cache
def of_floats(c: Any, lanes: int) -> Array:
    """The table of kernels.cpu.intrinsics' windows of float32: the last bits of a vector are of its outputs
    whose windows lie within the image as a whole."""
    rows, columns = np.divmod(np.arange(c.kh * c.kw), c.kw)
    held = inside(c, lanes, rows * c.dilation_h, columns * c.dilation_w)
    held = np.concatenate([held, held.all(axis=1, keepdims=True)], axis=1)
    seen = np.zeros((*held.shape[:2], 64), bool)
    seen[..., :lanes] = held
    return told(c, lanes, seen)


def room(c: Any, lanes: int, at_once: int, last: int | None = None) -> tuple[int, int]:
    """Elements before a plane, and behind it, that are read. at_once: how many are, from a place of a window
    on; last: how far behind the window's first place its last one lies, if that is not its last tap."""
    if last is None:
        last = (c.kh - 1) * c.dilation_h * c.w + (c.kw - 1) * c.dilation_w
    at = vectors(c, lanes)[0]
    return max(0, -int(at.min())), max(0, int(at.max()) + last + at_once - c.h * c.w)


def room_of_floats(c: Any, lanes: int) -> tuple[int, int]:
    """The same of kernels.cpu.intrinsics' windows of float32."""
    return room(c, lanes, lanes * c.stride_w)


@inlined
def with_room(x: Any, at: Any, size: Any, before: Any, beyond: Any, end: Any, alone: Any, each: Any) -> Any:
    """The plane x + at, of `size` elements of `each` bytes. Where so many elements before it, and beyond it,
    are not all among the `end` of x: its copy in `alone`, which has room for them around."""
    plane = simd.shifted(x, at)
    if at < before or at + size + beyond > end:
        simd.copied(simd.as_octets(alone), simd.as_octets(plane), size * each, 1)
        return alone
    return plane
