"""Where the vectors of a plane's outputs begin, and what their windows see of the plane: the tables of rungs
that read windows where they lie (kernels.cpu.windows).

Where an image is as wide as its answer, outputs of several rows are one vector, for their windows lie as far
apart as they do; else a vector has outputs of one row.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from kernels.cpu.common import Array


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


def room(c: Any, lanes: int, furthest: int) -> tuple[int, int]:
    """Elements before a plane, and behind it, that are read. furthest: of a vector's first window the element
    behind the last that is read, in elements of the image."""
    at = vectors(c, lanes)[0]
    return max(0, -int(at.min())), max(0, int(at.max()) + furthest - c.h * c.w)
