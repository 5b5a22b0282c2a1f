"""What the CPU rungs of products of eight-bit numbers share.

NumPy multiplies matrices of whole numbers in plain loops, and of floating-point numbers by BLAS. Sums of
whole numbers are exact there, in any order, while they stay below 2²⁴ in float32 and below 2⁵³ in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from kernels.cpu import simd
from kernels.cpu.common import Array
from kernels.cpu.compiled import inlined
from kernels.ops._quantized import EIGHT_BITS, LARGEST, Quantized
from kernels.ops.qadd import QAdd

INT32, FLOAT32, BYTES = range(3)  # what becomes of a sum in a compiled rung (kernels.cpu.dots)
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


# --- compiled rungs, whose tiles are those of kernels.cpu.dots ---

FLIP = 128  # what makes an int8 the uint8 that is larger by 128, and back
NO_WORDS, NO_REALS = np.zeros(1, np.int32), np.zeros(1)  # where there is no bias, scale or shift


def flips(p: Quantized) -> tuple[int, int]:
    """Of x, which is multiplied unsigned, and of the weights, which are signed."""
    return (FLIP if p.dtype == "int8" else 0), (FLIP if p.weight_dtype == "uint8" else 0)


def signed(p: Quantized, weights: Array) -> Array:
    """The weights as int8, less by 128 where they are uint8."""
    return (weights.view(np.uint8) ^ np.uint8(flips(p)[1])).view(np.int8)


def kind(p: Quantized) -> int:
    """What becomes of a sum, as tiles are told."""
    return INT32 if p.to == "int32" else FLOAT32 if p.to == "float32" else BYTES


def numbers(p: Quantized) -> Array:
    """What is behind a sum, as tiles are told."""
    scale = float(np.float32(p.out_scale))
    return np.array([scale, p.out_zero, p.low, p.high], np.float64)


def behind(p: Quantized, inputs: Sequence[Array]) -> list[Array]:
    """bias, scale and shift, or what is never read."""
    given = [array.reshape(-1) for array in inputs[4:]]
    return [*given, *(NO_WORDS, NO_REALS, NO_REALS)[len(given) :]]


def of_sum(p: QAdd, flips: Sequence[int]) -> Array:
    """What a sum of two bytes is told (kernels.cpu.octets.adder), whose zero points are those of unsigned
    numbers; with the steps of one of each, what is added to these, and up to which distance from a whole
    number the byte is sure.

    With u = 2⁻²⁴, the three numbers are in float32 each off by at most u of themselves, and each of the two
    sums of float32 by u of itself: together by at most 3u (255 (x_steps + z_steps) + |added|)."""
    x_scale, z_scale, scale = (float(np.float32(value)) for value in (p.a_scale, p.b_scale, p.out_scale))
    x_zero, z_zero = p.a_zero + flips[0], p.b_zero + flips[1]
    steps = [x_scale / scale, z_scale / scale]
    added = p.out_zero - x_zero * steps[0] - z_zero * steps[1]
    sure = 0.5 - 2.0**-22 * (255 * (abs(steps[0]) + abs(steps[1])) + abs(added))
    zeros = [x_zero, z_zero]
    return np.array([x_scale, z_scale, scale, p.out_zero, p.low, p.high, *zeros, *steps, added, sure])


@inlined
def zero_points(first, count, terms, x_zero, weight_zero, each, weight_flip, weight_sums, correction, zero):
    """What comes off the sums of the channels `first` to `first + count`, into `correction`, and their
    weights' zero points, into `zero`; whether one of these is not 0. x_zero: as an unsigned number.

    Σ (x − a) (w − b) = Σ x w − b Σ x + a (k b − Σ w)"""
    found = 0
    for i in range(count):
        own = weight_zero[(first + i) * each] ^ weight_flip
        own = own if own < FLIP else own - 2 * FLIP
        zero[i] = own
        correction[i] = x_zero * (terms * own - weight_sums[first + i])
        found = found if own == 0 else 1
    return found


@inlined
def in_float32(ready, apart, first, count, terms, to, correction, bias, scale, shift, with_shift, numbers):
    """What bytes are made by in float32, of the channels `first` to `first + count`: ready[k · apart + i] is
    what a sum begins with, by which it is multiplied, what is added then, the zero point too, and up to which
    distance from a whole number the byte is sure. Returns `apart`, or 0 where no byte is asked for, or where
    a sum and its bias may be beyond 32 bits.

    With u = 2⁻²⁴, the sum, the factor and what is added are in float32 each off by at most u of themselves,
    and so is what is made of them: a number q of steps by 6u |q| + 4u |added|. From 512 steps on it is held
    at an end whatever it is. So q is sure where it lies 8u (512 + |added|) from half-way between steps."""
    if to != BYTES:
        return 0
    room = 2**31 - 1 - terms * LARGEST * LARGEST
    factors, moved = (
        simd.as_floats(simd.shifted(ready, apart)),
        simd.as_floats(simd.shifted(ready, 2 * apart)),
    )
    sure, per_step = simd.as_floats(simd.shifted(ready, 3 * apart)), 1 / numbers[0]
    for i in range(count):
        own = bias[first + i]
        if own > room or own < -room:
            return 0
        ready[i] = correction[i] + own
        factors[i] = np.float32(scale[first + i] * per_step)
        by = np.float32((shift[first + i] * per_step if with_shift == 1 else 0.0) + numbers[1])
        moved[i] = by
        sure[i] = np.float32(0.5 - 2.0**-21 * (512 + abs(np.float64(by))))
    return apart
