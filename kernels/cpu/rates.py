"""What a core can do at most, as compiled loops that do nothing else; engine.probe times them. Like
kernels/cuda/probe for a GPU."""

from __future__ import annotations

import numpy as np

from kernels.cpu import simd
from kernels.cpu.compiled import Array, Call, compiled, tiles
from kernels.cpu.quantized import INT32
from kernels.cpu.simd import DOT_VECTORS, LANES, ROWS, WIDTHS

DEPTH = 1024  # products of a sum
NEAR = 16  # vectors that they are made of, again and again: they stay in the first-level cache

SHAPES = tuple((rows, vectors) for rows, widths in WIDTHS.items() for vectors in widths)
"""(rows, vectors) of a tile: which of them keeps the multipliers busy depends on how many registers there are
and how wide."""


@compiled
def multiply_adds(a, low, high, scratch):
    """Tiles of sums in registers, of factors that lie in the nearest cache."""
    factors, ones = simd.floats(a[1]), simd.floats(a[2])
    offsets, bases, columns, lanes = (
        simd.integers(a[3]),
        simd.integers(a[4]),
        simd.integers(a[5]),
        simd.integers(a[6]),
    )
    for _ in range(low, high):
        simd.tile(
            a[9], a[7], a[8], factors, 1, 0, ones, offsets, bases, a[10], scratch, a[8] * LANES, columns,
            lanes, factors, 0, simd.PLAIN, factors,
        )  # fmt: skip


def chains(rows: int, vectors: int, rounds: int) -> Call:
    """For one thread: so many rounds of a tile of this shape; `operations` of them in all."""
    widest = max(max(widths) for widths in WIDTHS.values())
    steps = np.arange(DEPTH, dtype=np.int64) % NEAR * widest * LANES
    places = np.arange(widest, dtype=np.int64) * LANES
    arguments: list[int | float | Array] = [
        np.full(widest * LANES, 0.5, np.float32), np.ones(NEAR * widest * LANES, np.float32), steps, places,
        places, np.full(widest, LANES, np.int64), rows, vectors, tiles(), DEPTH,
    ]  # fmt: skip
    sums = np.zeros(max(WIDTHS) * widest * LANES, np.float32)
    return Call(multiply_adds, arguments, sums, 0, rounds)


def operations(rows: int, vectors: int, rounds: int) -> int:
    """A multiply-add is two."""
    return 2 * rows * vectors * LANES * DEPTH * rounds


# --- of eight-bit numbers ---

QUADS = 96  # words of a sum: rows and vectors of a tile stay in the first-level cache
DOTS = 2 * 4 * ROWS * DOT_VECTORS[ROWS] * LANES * QUADS  # operations of a tile


@compiled
def products_of_bytes(a, low, high, scratch):
    """The largest tile of sums of eight-bit products, again and again."""
    left, right, none, real = simd.words(a[1]), simd.words(a[2]), simd.words(a[3]), simd.doubles(a[4])
    places = simd.integers(a[8])
    width = a[5] * LANES
    for _ in range(low, high):
        simd.largest_dots(
            a[6], a[5], left, places, places, right, a[7], simd.as_octets(scratch), width, width,
            INT32, real, none, none, real, real, none, none, 0, 0, none, 0,
        )  # fmt: skip


def byte_chains(rounds: int) -> Call:
    """For one thread: so many rounds of that tile; DOTS operations in each."""
    vectors = DOT_VECTORS[ROWS]
    factors = np.full((ROWS + vectors * LANES, QUADS), 0x01020304, np.int32)
    arguments: list[int | float | Array] = [
        factors[:ROWS], factors[ROWS:], np.zeros(ROWS, np.int32), np.zeros(ROWS), vectors, ROWS, QUADS,
        np.arange(QUADS, dtype=np.int64) * vectors * LANES,
    ]  # fmt: skip
    sums = np.zeros(ROWS * vectors * LANES, np.float32)
    return Call(products_of_bytes, arguments, sums, 0, rounds)
