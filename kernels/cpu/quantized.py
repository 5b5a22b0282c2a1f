"""What the CPU rungs of products of eight-bit numbers share.

NumPy multiplies matrices of whole numbers in plain loops, and of floating-point numbers by BLAS. Sums of
whole numbers are exact there, in any order, while they stay below 2²⁴ in float32 and below 2⁵³ in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from kernels.cpu.common import Array
from kernels.ops._quantized import EIGHT_BITS, Quantized

FLOAT32_HOLDS = 2**24 // 255**2  # products of two factors of up to 255 whose sum float32 holds


def carrier(p: Quantized) -> Any:
    """The floating-point type in which the sums of p are exact."""
    return np.float32 if p.terms <= FLOAT32_HOLDS else np.float64


def carved(workspace: Array, *wanted: tuple[Sequence[int], Any]) -> list[Array]:
    """Arrays of these shapes and types, one after the other in the flat workspace, each on a cache line."""
    whole, arrays, start = workspace.view(np.uint8), [], 0
    for shape, dtype in wanted:
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        arrays.append(whole[start : start + nbytes].view(dtype).reshape(tuple(shape)))
        start += -(-nbytes // 64) * 64
    return arrays


def carved_nbytes(*wanted: tuple[Sequence[int], Any]) -> int:
    """Bytes of workspace that `carved` needs."""
    return sum(-(-int(np.prod(shape)) * np.dtype(dtype).itemsize // 64) * 64 for shape, dtype in wanted)


def centred(into: Array, x: Array, zero: Array) -> list[Callable[[], object]]:
    """Calls that write x − zero into an array of floating point."""
    return [partial(np.copyto, into, x), partial(np.subtract, into, zero, into)]


def finish(
    p: Quantized, sums: Array, wide: Array, y: Array, behind: Sequence[Array], axis: int
) -> list[Callable[[], object]]:
    """Calls that make y of the sums, of some of the channels. wide: float64, of the sums' shape. behind:
    bias, scale and shift of these channels, where p has them. axis: along which they lie."""
    if p.to == "int32":
        if sums.dtype != np.float64:
            return [partial(np.copyto, y, sums, "unsafe")]
        whole = wide.view(np.int64)  # of a sum beyond 32 bits what 32 bits keep of it
        return [partial(np.copyto, whole, sums, "unsafe"), partial(np.copyto, y, whole, "unsafe")]
    shape = [1] * sums.ndim
    shape[axis] = -1
    bias, scale, *shift = (array.reshape(shape) for array in behind)
    calls: list[Callable[[], object]] = [
        partial(np.add, sums, bias, wide),
        partial(np.multiply, wide, scale, wide),
        *(partial(np.add, wide, each, wide) for each in shift),
    ]
    if p.to in EIGHT_BITS:
        calls += [
            partial(np.divide, wide, np.float64(np.float32(p.out_scale)), wide),
            partial(np.rint, wide, wide),
            partial(np.add, wide, np.float64(p.out_zero), wide),
            partial(np.clip, wide, np.float64(p.low), np.float64(p.high), wide),
        ]
    return [*calls, partial(np.copyto, y, wide, "unsafe")]
