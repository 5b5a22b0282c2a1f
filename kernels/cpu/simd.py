"""What compiled CPU rungs write that plain Python has no words for: pointers, atomic counters, one tile of a
matrix product in registers. The names are Numba's own functions, made when a compiled function is first asked
for; whoever loads one from the cache never imports Numba.

In a compiled function

    floats(address)             the address as `float*`, to be read and written by index as in C
    integers(address)           the same as `int64_t*`
    doubles, words, halves, octets   the same as `double*`, `int32_t*`, `int16_t*`, `uint8_t*`
    as_octets, as_words, as_floats   a pointer as one to other elements
    shifted(pointer, n)         pointer + n elements
    number(word)                the float64 whose bits an argument carries (`kernels.cpu.compiled.word`)
    bits(f), from_bits(i)       a float32 as the int32 of its bits, and back
    tile(...)                   rows × vectors of LANES outputs, all products of a sum, in registers
    dots_by_row(...), dots_by_lane(...)   the same of eight-bit numbers, with what is behind the sums
    under_windows(...)          a plane of bytes under the windows of a map, the same behind the sums
    sums_of_windows, maxima_of_windows   the same of float32, and the largest under each window
    total(...), largest(...)    of the elements of vectors that lie side by side
    turned(...)                 rows of float32 as columns
    to_tiles(...), from_tiles(...)   Winograd's sums before the products and behind them
    largest_of_windows(...)     a plane of bytes, the largest under each window
    copied(...), picked(...)    bytes, or float32, to where others lie
    woven, added(...)           four rows of bytes as one of words; sums of bytes between two scales
    invoke(address, a, low, high, scratch)   another compiled function, by its address
    load, store, add, swap      of an int64 that several threads see
    pause, give_way, cycles     for who waits: a moment, the core to others, a counter of time
    without_subnormals, as_before   the smallest numbers as zeros, and as they were
    doze, rouse                 sleep at an int64 for as long as it has a value; wake who sleeps there

Nothing here checks a bound: as in C, what is read and written beyond an array is the kernel's fault.
"""

from __future__ import annotations

import importlib
from typing import Any

LANES = 16  # of a vector; compilers make two or four registers of it where the machine's are shorter
ROWS = 8  # of a tile, at most
WIDTHS = {1: (8, 4, 2, 1), 2: (8, 4, 2, 1), 4: (4, 2, 1), 6: (4, 2, 1), 7: (3, 2, 1), 8: (3, 2, 1)}
"""Vectors that a tile of so many rows may have: accumulators stay in the registers of AVX-512."""

OF_VECTOR = 3  # numbers that a table tells of a vector, before its masks (kernels.cpu.planes)
WOVEN = 2 * LANES  # bytes beyond the last that `woven` may read
DOT_ROWS = (8, 4, 2, 1)
DOT_VECTORS = {8: 3, 4: 3, 2: 4, 1: 4}  # of a tile of eight-bit numbers of so many rows, at most

PLAIN, RELU, RELU6 = 0, 1, 2  # what a tile does to its sums


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        intrinsics = importlib.import_module("kernels.cpu.intrinsics")
        if hasattr(intrinsics, name):
            return getattr(intrinsics, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
