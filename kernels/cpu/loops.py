"""What compiled rungs share: sizes of tiles, activations, a plane of a pool, one of a normalisation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernels.cpu import simd
from kernels.cpu.compiled import inlined
from kernels.cpu.functions import ERF_BOTTOM, ERF_TOP
from kernels.ops import ACTIVATIONS

NONE = 0
KINDS: dict[str | None, int] = {None: NONE, **{name: i for i, name in enumerate(ACTIVATIONS, 1)}}
RELU, TANH, SIGMOID, RELU6 = (KINDS[name] for name in ("relu", "tanh", "sigmoid", "relu6"))
IN_TILE = {None: simd.PLAIN, "relu": simd.RELU, "relu6": simd.RELU6}
"""What a tile does itself; the others go over what it has written."""


@inlined
def tile_rows(left: int) -> int:
    """Of the next tile, where so many rows are left; 49, as of an image of 7 × 7, are seven times seven."""
    if left % 7 == 0 and left % 8 > 0 and left < 56:
        return 7
    return 8 if left >= 8 else (6 if left >= 6 else (4 if left >= 4 else (2 if left >= 2 else 1)))


@inlined
def tile_vectors(rows: int, left: int) -> int:
    """Of the next tile of so many rows, one of simd.WIDTHS."""
    if rows >= 7:
        return 3 if left >= 3 and left != 4 else (2 if left >= 2 else 1)
    if rows < 4 and left >= 8:
        return 8
    return 4 if left >= 4 else (2 if left >= 2 else 1)


# tanh(x) = x · P(x²) / Q(x²) up to where it is 1 in float32: the rational function of Eigen and of XLA.
_P = (4.89352455891786e-03, 6.37261928875436e-04, 1.48572235717979e-05, 5.12229709037114e-08,
      -8.60467152213735e-11, 2.00018790482477e-13, -2.76076847742355e-16)  # fmt: skip
_Q = (4.89352518554385e-03, 2.26843463243900e-03, 1.18534705686654e-04, 1.19825839466702e-06)
P0, P1, P2, P3, P4, P5, P6 = map(np.float32, _P)
Q0, Q1, Q2, Q3 = map(np.float32, _Q)
TANH_END, TANH_LINEAR = np.float32(7.90531110763549805), np.float32(0.0004)

# exp(x) = 2^n · exp(r), |r| ≤ ln 2 / 2: the polynomial of Cephes.
_E = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
E0, E1, E2, E3, E4, E5 = map(np.float32, _E)
LOG2E, LN2_HIGH, LN2_LOW = (
    np.float32(1.44269504088896341),
    np.float32(0.693359375),
    np.float32(-2.12194440e-4),
)
EXP_LEAST, EXP_MOST, INFINITY = np.float32(-87.33), np.float32(88.72), np.float32(np.inf)
EXP_LARGE = np.float32(88)
ZERO, HALF, ONE, SIX = map(np.float32, (0.0, 0.5, 1.0, 6.0))


@inlined
def tanh(x: Any) -> Any:
    c = TANH_END if x > TANH_END else x
    c = -TANH_END if c < -TANH_END else c
    s = c * c
    p = c * (P0 + s * (P1 + s * (P2 + s * (P3 + s * (P4 + s * (P5 + s * P6))))))
    q = Q0 + s * (Q1 + s * (Q2 + s * Q3))
    y = p / q
    return x if abs(x) < TANH_LINEAR else y


@inlined
def exp(x: Any) -> Any:
    """0 below what a normal float32 holds."""
    c = EXP_MOST if x > EXP_MOST else x
    c = EXP_LEAST if c < EXP_LEAST else c
    n = np.floor(c * LOG2E + HALF)
    r = c - n * LN2_HIGH - n * LN2_LOW
    p = ((((E0 * r + E1) * r + E2) * r + E3) * r + E4) * r + E5
    y = p * r * r + r + ONE
    # 2^n in two halves, as the whole may be beyond the largest exponent
    whole = np.int32(n if n == n else ZERO)
    half = whole >> np.int32(1)
    y = y * simd.from_bits((half + np.int32(127)) << np.int32(23))
    y = y * simd.from_bits((whole - half + np.int32(127)) << np.int32(23))
    y = INFINITY if x > EXP_MOST else y
    y = ZERO if x < EXP_LEAST else y
    return y if x == x else x


@inlined
def exp_of_less(x: Any) -> Any:
    """exp(x) of x up to 88: with less to ask of it, it takes two thirds of the time."""
    c = EXP_LEAST if x < EXP_LEAST else x
    n = np.floor(c * LOG2E + HALF)
    r = c - n * LN2_HIGH - n * LN2_LOW
    p = ((((E0 * r + E1) * r + E2) * r + E3) * r + E4) * r + E5
    y = (p * r * r + r + ONE) * simd.from_bits(
        (np.int32(n if n == n else ZERO) + np.int32(127)) << np.int32(23)
    )
    return ZERO if x < EXP_LEAST else y


@inlined
def over_one_plus_exp(of: Any, x: Any) -> Any:
    """of / (1 + exp(x))."""
    c = EXP_LARGE if x > EXP_LARGE else x
    y = of / (ONE + exp_of_less(c))
    return of * ZERO if x > EXP_LARGE else y


T0, T1, T2, T3, T4, T5, T6 = map(np.float32, ERF_TOP)
B0, B1, B2, B3, B4 = map(np.float32, ERF_BOTTOM)
ERF_END = np.float32(4)


@inlined
def erf(x: Any) -> Any:
    """As kernels.cpu.functions has it."""
    c = ERF_END if x > ERF_END else x
    c = -ERF_END if c < -ERF_END else c
    s = c * c
    p = T6 + s * (T5 + s * (T4 + s * (T3 + s * (T2 + s * (T1 + s * T0)))))
    return c * p / (B4 + s * (B3 + s * (B2 + s * (B1 + s * B0))))


@inlined
def activate(kind: int, y: Any, count: int) -> None:
    """One of KINDS over `count` elements in place. NaN stays what it is."""
    if kind == RELU:
        for i in range(count):
            y[i] = ZERO if y[i] < ZERO else y[i]
    elif kind == RELU6:
        for i in range(count):
            low = ZERO if y[i] < ZERO else y[i]
            y[i] = SIX if low > SIX else low
    elif kind == TANH:
        for i in range(count):
            y[i] = tanh(y[i])
    elif kind == SIGMOID:
        for i in range(count):
            y[i] = over_one_plus_exp(ONE, -y[i])


@inlined
def larger(left: Any, right: Any) -> Any:
    """NaN where one of them is."""
    return right if (right > left) | (right != right) else left


def pool_words(p: Any) -> list[int]:
    """What pool_plane is told of a pool, from its place in the arguments on."""
    words = [p.kind == "max", p.h, p.w, p.kh, p.kw, p.out_h, p.out_w, p.stride_h, p.stride_w, p.pad_top]
    return [*map(int, words), p.pad_left, p.dilation_h, p.dilation_w]


@inlined
def pool_plane(a: Any, first: int, x: Any, counts: Any, y: Any, row: Any) -> None:
    """A channel of an image; a[first …] as pool_words has it, `row`: w elements of scratch.

    The window's rows first, in one contiguous run, then its columns; a window of padding alone is −∞ or 0.
    """
    largest, h, w, kh, kw = a[first], a[first + 1], a[first + 2], a[first + 3], a[first + 4]
    out_h, out_w, stride_h, stride_w = a[first + 5], a[first + 6], a[first + 7], a[first + 8]
    pad_top, pad_left, dilation_h, dilation_w = a[first + 9], a[first + 10], a[first + 11], a[first + 12]
    for oy in range(out_h):
        to = simd.shifted(y, oy * out_w)
        begun = 0
        for i in range(kh):
            at = oy * stride_h - pad_top + i * dilation_h
            if at >= 0 and at < h:
                of = simd.shifted(x, at * w)
                if begun == 0:
                    for k in range(w):
                        row[k] = of[k]
                elif largest == 1:
                    for k in range(w):
                        row[k] = larger(row[k], of[k])
                else:
                    for k in range(w):
                        row[k] = row[k] + of[k]
                begun = 1
        nothing = -INFINITY if largest == 1 else ZERO
        if begun == 0:
            for k in range(w):
                row[k] = nothing
        if kw == 2 and stride_w == 2 and dilation_w == 1 and pad_left == 0 and 2 * out_w <= w:
            if largest == 1:
                for k in range(out_w):
                    to[k] = larger(row[2 * k], row[2 * k + 1])
            else:
                for k in range(out_w):
                    to[k] = row[2 * k] + row[2 * k + 1]
        elif kw == 3 and stride_w == 2 and dilation_w == 1 and pad_left == 0 and 2 * out_w + 1 <= w:
            if largest == 1:
                for k in range(out_w):
                    to[k] = larger(larger(row[2 * k], row[2 * k + 1]), row[2 * k + 2])
            else:
                for k in range(out_w):
                    to[k] = row[2 * k] + row[2 * k + 1] + row[2 * k + 2]
        else:
            for k in range(out_w):
                to[k] = nothing
            for j in range(kw):
                start = j * dilation_w - pad_left
                low = 0 if start >= 0 else (-start + stride_w - 1) // stride_w
                high = min(out_w, (w - start + stride_w - 1) // stride_w)
                if largest == 1:
                    for k in range(low, high):
                        to[k] = larger(to[k], row[start + k * stride_w])
                else:
                    for k in range(low, high):
                        to[k] = to[k] + row[start + k * stride_w]
        if largest == 0:
            of = simd.shifted(counts, oy * out_w)
            for k in range(out_w):
                to[k] = to[k] / of[k]


def lrn_words(p: Any) -> list[int | float]:
    """What lrn_plane is told, from its place in the arguments on."""
    power = {0.75: 1, 0.5: 2, 1.0: 3}.get(p.beta, 0)
    return [p.size, power, float(p.alpha / p.size), float(p.beta), float(p.bias)]


@inlined
def lrn_plane(a: Any, first: int, x: Any, channel: int, channels: int, inner: int, y: Any) -> None:
    """A channel of the image x; a[first …] as lrn_words has it."""
    size, power = a[first], a[first + 1]
    scale, beta = np.float32(simd.number(a[first + 2])), simd.number(a[first + 3])
    bias = np.float32(simd.number(a[first + 4]))
    low = max(0, channel - (size - 1) // 2)
    high = min(channels, channel + size // 2 + 1)
    own = simd.shifted(x, channel * inner)
    for k in range(inner):
        y[k] = ZERO
    for c in range(low, high):
        of = simd.shifted(x, c * inner)
        for k in range(inner):
            y[k] = y[k] + of[k] * of[k]
    if power == 1:
        for k in range(inner):
            root = np.sqrt(bias + scale * y[k])
            y[k] = own[k] / (root * np.sqrt(root))
    elif power == 2:
        for k in range(inner):
            y[k] = own[k] / np.sqrt(bias + scale * y[k])
    elif power == 3:
        for k in range(inner):
            y[k] = own[k] / (bias + scale * y[k])
    else:
        for k in range(inner):
            y[k] = np.float32(own[k] * math.pow(np.float64(bias + scale * y[k]), -beta))
