"""Small CUDA kernels, each with a few things of the language that kernels use, and NumPy's answer.

A kernel is a body: x has N whole numbers of 32 bits, f N float32 between 0.5 and 8;
    y takes N answers of 32 or
64 bits, z has N zeros; i is the thread's number in the grid, t in its block. A case is tried on all of its
architectures. What is in front of the body ("head") stands outside of the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

N, THREADS = 256, 128
Answer = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Case:
    """right: of x and f the answers, whose type is that of y. off: how far a float may be off, relatively.
    least: the oldest architecture."""

    name: str
    body: str
    right: Answer
    head: str = ""
    off: float = 0
    least: int = 75
    only: str = ""  # the architecture where there is one alone

    @property
    def arches(self) -> tuple[str, ...]:
        if self.only:
            return (self.only,)
        return tuple(f"sm_{a}" for a in (75, 80, 90) if a >= self.least)


CASES: list[Case] = []


def case(name: str, body: str, right: Answer, **more) -> None:
    CASES.append(Case(name, body, right, **more))


def _i() -> np.ndarray:
    return np.arange(N, dtype=np.int64)


def _u(x: np.ndarray) -> np.ndarray:
    return x.view(np.uint32)


def _each(of: Callable[..., float | int], dtype: DTypeLike) -> Answer:
    return lambda x, f: np.array([of(int(a), float(b)) for a, b in zip(x, f, strict=True)], dtype)


def _warps(values: np.ndarray) -> np.ndarray:
    return values.reshape(-1, 32)


def _of_warp(of: Callable[[np.ndarray], np.integer]) -> Answer:
    def right(x: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.concatenate([np.broadcast_to(of(w), (32,)) for w in _warps(x)])

    return right


def s32(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _half(f: np.ndarray) -> np.ndarray:
    return f.astype(np.float16)


def _bf16(f: np.ndarray) -> np.ndarray:
    bits = f.astype(np.float32).view(np.uint32).astype(np.uint64)
    near = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16
    return near.astype(np.uint32).view(np.float32)


# --- whole numbers ---

case(
    "division of int",
    "y[i] = x[i] / (t % 7 - 3 ? t % 7 - 3 : 5);",
    lambda x, f: np.array(
        [
            s32(int(a / b) if abs(a) < 2**52 else 0)
            for a, b in zip(x.tolist(), [(i % 128 % 7 - 3) or 5 for i in range(N)], strict=True)
        ],
        np.int32,
    ),
)
case(
    "remainder of unsigned",
    "y[i] = (unsigned)x[i] % (unsigned)(i + 1);",
    lambda x, f: (_u(x).astype(np.int64) % (_i() + 1)).astype(np.int32),
)
case(
    "division of long long",
    "((long long*)y)[i] = ((long long)x[i] << 20) / (i - 100 ? i - 100 : 1);",
    lambda x, f: np.array(
        [
            int(abs(a << 20) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
            for a, b in zip(x.tolist(), [(i - 100) or 1 for i in range(N)], strict=True)
        ],
        np.int64,
    ),
)
case(
    "products' high halves",
    "y[i] = __mulhi(x[i], x[i] ^ 0x5bd1e995) + __umulhi(x[i], 0xdeadbeefu);",
    _each(
        lambda a, _: s32((a * s32(a ^ 0x5BD1E995) >> 32) + ((a & 0xFFFFFFFF) * 0xDEADBEEF >> 32)), np.int32
    ),
)
case(
    "products' high halves of 64 bits",
    """
    const unsigned long long a = (unsigned long long)(unsigned)x[i] * 0x9e3779b97f4a7c15ull;
    ((long long*)y)[i] = __umul64hi(a, 0xc2b2ae3d27d4eb4full) + __mul64hi((long long)a, x[i]);""",
    _each(
        lambda x, _: _s64(
            (_high(a := (x & 0xFFFFFFFF) * 0x9E3779B97F4A7C15 & M64, 0xC2B2AE3D27D4EB4F))
            + (_s64(a) * x >> 64)
        ),
        np.int64,
    ),
)
case(
    "funnel shifts",
    """y[i] = __funnelshift_l(x[i], i, t) ^ __funnelshift_r(x[i], i, t) ^
    __funnelshift_lc(x[i], i, t) ^ __funnelshift_rc(x[i], i, 40);""",
    lambda x, f: np.array(
        [
            s32(
                _fl(a, i, i % 128 & 31)
                ^ _fr(a, i, i % 128 & 31)
                ^ _fl(a, i, min(i % 128, 32))
                ^ _fr(a, i, 32)
            )
            for i, a in enumerate(x.tolist())
        ],
        np.int32,
    ),
)
case(
    "bits",
    "y[i] = __popc(x[i]) + 100 * __clz(x[i]) + 10000 * __ffs(x[i]) + (__brev(x[i]) & 0xff0000);",
    _each(
        lambda a, _: (
            (u := a & 0xFFFFFFFF).bit_count()
            + 100 * (32 - u.bit_length())
            + 10000 * ((u & -u).bit_length())
            + (int(f"{u:032b}"[::-1], 2) & 0xFF0000)
        ),
        np.int32,
    ),
)
case(
    "bits of 64",
    """const unsigned long long v = (unsigned long long)(unsigned)x[i] << (t % 33);
    y[i] = __popcll(v) + 100 * __clzll(v) + 10000 * __ffsll(v) + (int)(__brevll(v) >> 62) * 1000000;""",
    lambda x, f: np.array(
        [
            (v := (a & 0xFFFFFFFF) << (i % 128 % 33)).bit_count()
            + 100 * (64 - v.bit_length())
            + 10000 * ((v & -v).bit_length())
            + 1000000 * int(f"{v:064b}"[::-1][:2], 2)
            for i, a in enumerate(x.tolist())
        ],
        np.int32,
    ),
)
case(
    "byte permutation",
    "y[i] = __byte_perm(x[i], i, 0x4150) ^ __byte_perm(x[i], ~i, t & 0x7777);",
    lambda x, f: np.array(
        [s32(_perm(a, i, 0x4150) ^ _perm(a, ~i, i % 128 & 0x7777)) for i, a in enumerate(x.tolist())],
        np.int32,
    ),
)
case(
    "four bytes at once",
    """
    const unsigned a = x[i], b = x[(i + 1) % n];
    y[i] = __vadd4(a, b) ^ __vmaxu4(a, b) ^ __vabsdiffs4(a, b) ^ __vcmpgts4(a, b) ^ __vavgu4(a, b)
        ^ __vsadu4(a, b) ^ __vaddss4(a, b) ^ __vsubus4(a, b);""",
    lambda x, f: _bytes4(x, np.roll(x, -1)),
)
case(
    "two halves at once",
    """
    const unsigned a = x[i], b = x[(i + 1) % n];
    y[i] = __vadd2(a, b) ^ __vmins2(a, b) ^ __vsubss2(a, b) ^ __vcmpeq2(a, b & a) ^ __vabs2(a)
        ^ __vmaxs2(a, b) ^ __vneg2(b) ^ __vaddus2(a, b);""",
    lambda x, f: _halves2(x, np.roll(x, -1)),
)
case(
    "more of two at once",
    """
    const unsigned a = x[i], b = x[(i + 1) % n], c = 0x00050003;
    bool high, low;
    const unsigned m = __vibmax_s16x2(a, b, &high, &low);
    y[i] = __vimax3_s32(x[i], x[(i + 1) % n], 7) ^ __viaddmax_s16x2_relu(a, b, c) ^ m ^ high ^ 2 * low;""",
    lambda x, f: _halves3(x, np.roll(x, -1)),
    least=80,
)
case(
    "products of bytes",
    "y[i] = __dp4a(x[i], x[(i + 1) % n], i) + __dp2a_lo(x[i], x[(i + 3) % n], 0);",
    lambda x, f: (
        np.einsum("ij,ij->i", _b(x), _b(np.roll(x, -1)))
        + _i()
        + np.einsum("ij,ij->i", _h(x), _b(np.roll(x, -3))[:, :2])
    ).astype(np.int32),
)
case(
    "saturation",
    "y[i] = __sad(x[i], i, 5u) + abs(x[i]) / 2 + __hadd(x[i], i) + __rhadd(x[i], i) + __mul24(x[i], 3);",
    lambda x, f: np.array(
        [
            s32(abs(a - i) + 5 + _c_div(s32(abs(a)), 2) + (a + i >> 1) + (a + i + 1 >> 1) + _of24(a) * 3)
            for i, a in enumerate(x.tolist())
        ],
        np.int32,
    ),
)
M64 = (1 << 64) - 1


def _s64(value: int) -> int:
    value &= M64
    return value - (1 << 64) if value >> 63 else value


def _high(a: int, b: int) -> int:
    return a * b >> 64


def _fl(low: int, high: int, by: int) -> int:
    return ((high & 0xFFFFFFFF) << 32 | low & 0xFFFFFFFF) << by >> 32 & 0xFFFFFFFF


def _fr(low: int, high: int, by: int) -> int:
    return ((high & 0xFFFFFFFF) << 32 | low & 0xFFFFFFFF) >> by & 0xFFFFFFFF


def _perm(a: int, b: int, which: int) -> int:
    whole = (b & 0xFFFFFFFF) << 32 | a & 0xFFFFFFFF
    return sum((whole >> 8 * (which >> 4 * n & 7) & 255) << 8 * n for n in range(4))


def _c_div(a: int, b: int) -> int:
    return int(a / b)


def _of24(a: int) -> int:
    a &= 0xFFFFFF
    return a - (1 << 24) if a >> 23 else a


def _b(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(np.int8).reshape(-1, 4).astype(np.int64)


def _h(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(np.int16).reshape(-1, 2).astype(np.int64)


def _packed(values: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    return np.ascontiguousarray(values).astype(np.int64).astype(dtype).reshape(-1).view(np.int32)


def _bytes4(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    a, b = _b(x), _b(w)
    u, v = a & 255, b & 255
    total = _packed(a + b, np.uint8) ^ _packed(np.maximum(u, v), np.uint8) ^ _packed(abs(a - b), np.uint8)
    total = total ^ _packed(np.where(a > b, 255, 0), np.uint8) ^ _packed(u + v + 1 >> 1, np.uint8)
    total = total ^ abs(u - v).sum(1).astype(np.int32) ^ _packed(np.clip(a + b, -128, 127), np.int8)
    return total ^ _packed(np.maximum(u - v, 0), np.uint8)


def _halves2(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    a, b = _h(x), _h(w)
    u, v = a & 0xFFFF, b & 0xFFFF
    total = _packed(a + b, np.uint16) ^ _packed(np.minimum(a, b), np.int16)
    total = total ^ _packed(np.clip(a - b, -32768, 32767), np.int16)
    total = total ^ _packed(np.where(a == (a & b), 65535, 0), np.uint16) ^ _packed(abs(a), np.uint16)
    total = total ^ _packed(np.maximum(a, b), np.int16) ^ _packed(-b, np.int16)
    return total ^ _packed(np.minimum(u + v, 65535), np.uint16)


def _halves3(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    a, b = _h(x), _h(w)
    sums = _packed(np.maximum(0, np.maximum((a + b).astype(np.int16), [3, 5])), np.int16)
    bits = (a[:, 1] >= b[:, 1]) ^ 2 * (a[:, 0] >= b[:, 0])
    return (np.maximum(7, np.maximum(x, w)) ^ sums ^ _packed(np.maximum(a, b), np.int16) ^ bits).astype(
        np.int32
    )


# --- floating point ---

case(
    "double",
    """
    const double a = f[i], b = a * 1e-3 + x[i] * 1e-10;
    ((double*)y)[i] = sqrt(a) / 3.0 + fma(a, b, 1.0 / a) + rsqrt(a) + cbrt(a) + exp(b) - log(a) + sin(b)
        + cos(a) + pow(a, b) + atan2(a, b) + tanh(b) + erf(b) + fmod(a, 0.37) + hypot(a, b);""",
    _each(
        lambda x, a: (
            math.sqrt(a) / 3
            + (a * (b := a * 1e-3 + x * 1e-10) + 1 / a)
            + a**-0.5
            + a ** (1 / 3)
            + math.exp(b)
            - math.log(a)
            + math.sin(b)
            + math.cos(a)
            + a**b
            + math.atan2(a, b)
            + math.tanh(b)
            + math.erf(b)
            + math.fmod(a, 0.37)
            + math.hypot(a, b)
        ),
        np.float64,
    ),
    off=1e-11,
)
case(
    "more of double",
    """
    const double a = f[i];
    ((double*)y)[i] = lgamma(a) + tgamma(a) + asin(a / 9) + acos(a / 9) + sinh(a) + log1p(a) + expm1(a / 9)
        + erfc(a / 9) + log2(a) + exp2(a) + ceil(a) + floor(a) + rint(a) + trunc(a) + ldexp(a, 3) + j0(a)
            - j0(a);""",
    _each(
        lambda _, a: (
            math.lgamma(a)
            + math.gamma(a)
            + math.asin(a / 9)
            + math.acos(a / 9)
            + math.sinh(a)
            + math.log1p(a)
            + math.expm1(a / 9)
            + math.erfc(a / 9)
            + math.log2(a)
            + 2**a
            + math.ceil(a)
            + math.floor(a)
            + round(a)
            + math.trunc(a)
            + math.ldexp(a, 3)
        ),
        np.float64,
    ),
    off=1e-11,
)
case(
    "float",
    """
    const float a = f[i];
    ((float*)y)[i] = sqrtf(a) + 1.0f / a + expf(a / 9) + logf(a) + sinf(a) + cosf(a) + powf(a, 0.3f)
        + tanhf(a) + erff(a) + fmodf(a, 0.37f) + hypotf(a, 2) + cbrtf(a) + atan2f(a, 2) + log1pf(a);""",
    _each(
        lambda _, a: (
            math.sqrt(a)
            + 1 / a
            + math.exp(a / 9)
            + math.log(a)
            + math.sin(a)
            + math.cos(a)
            + a**0.3
            + math.tanh(a)
            + math.erf(a)
            + math.fmod(a, np.float32(0.37))
            + math.hypot(a, 2)
            + a ** (1 / 3)
            + math.atan2(a, 2)
            + math.log1p(a)
        ),
        np.float32,
    ),
    off=1e-5,
)
case(
    "large angles",
    "((float*)y)[i] = sinf(f[i] * 100000.0f) + cosf(x[i] * 1.5f) + tanf(f[i]);",
    _each(
        lambda x, a: (
            math.sin(float(np.float32(np.float32(a) * np.float32(100000))))
            + math.cos(float(np.float32(np.float32(x) * np.float32(1.5))))
            + math.tan(a)
        ),
        np.float32,
    ),
    off=1e-4,
)
case(
    "fast functions",
    """((float*)y)[i] = __expf(f[i]) + __logf(f[i]) + __sinf(f[i]) + __cosf(f[i]) + __powf(f[i], 2.5f)
        + __fdividef(f[i], 3.0f) + __frsqrt_rn(f[i]) + __frcp_rn(f[i]) + __fsqrt_rz(f[i]) +
            __saturatef(f[i] - 1)
        + exp10f(f[i] / 8) + __tanf(f[i] / 8) + __log2f(f[i]);""",
    _each(
        lambda _, a: (
            math.exp(a)
            + math.log(a)
            + math.sin(a)
            + math.cos(a)
            + a**2.5
            + a / 3
            + a**-0.5
            + 1 / a
            + a**0.5
            + min(1, max(0, a - 1))
            + 10 ** (a / 8)
            + math.tan(a / 8)
            + math.log2(a)
        ),
        np.float32,
    ),
    off=2e-5,
)
case(
    "rounding",
    """
    const float a = f[i] * 1.37f, b = 0.1f * i;
    y[i] = __float_as_int(__fadd_ru(a, b)) ^ __float_as_int(__fmul_rd(a, b)) ^ __float2int_rn(a * 10)
        ^ __float2int_ru(b) ^ __float2uint_rz(a) ^ __double2int_rd(-(double)b) ^
            __float_as_int(__int2float_rz(x[i]))
        ^ __float_as_int(__double2float_ru(1.0 / (i + 1)));""",
    lambda x, f: _rounded(x, f),
)
case(
    "classes and parts",
    """
    int e, q; float ip;
    const float a = f[i] * (i % 3 - 1), m = frexpf(a, &e), r = modff(a, &ip), v = remquof(f[i], 0.7f, &q);
    y[i] = isnan(a / 0.0f * 0.0f) + 2 * isinf(1 / (a * 0)) + 4 * signbit(a) + 8 * e + (int)(m * 1000) *
        64 + (int)ip * 3
        + (r > 0) + (q & 7) * 11 + (v < 0) + ilogbf(f[i]) + (nextafterf(a, 9.0f) > a) + isfinite(a);""",
    lambda x, f: _parts(f),
)
case(
    "half",
    """
    const half a = __float2half(f[i]), b = __float2half(0.1f * t);
    const half c = __hfma(a, b, __hsub(a, b)) / (a + b) + hsqrt(a) * hexp(__hneg(b) / __float2half(16.f));
    ((float*)y)[i] = __half2float(c) + __hgt(a, b) + __half2float(__hmax(a, b)) + __half2int_rz(a);""",
    lambda x, f: (
        lambda a, b: (
            (a * b + (a - b)) / (a + b)
            + np.sqrt(a) * np.exp(-b / 16)
            + (a > b)
            + np.maximum(a, b)
            + a.astype(int)
        )
    )(
        _half(f).astype(np.float64),
        _half(np.float32(0.1) * (np.arange(N) % 128).astype(np.float32)).astype(np.float64),
    ).astype(np.float32),
    head="#include <cuda_fp16.h>",
    off=4e-3,
)
case(
    "pairs of half",
    """
    const __half2 a = __floats2half2_rn(f[i], f[(i + 1) % n]), b = __half2half2(__float2half(0.25f * (t %
        8)));
    const __half2 c = __hadd2(__hmul2(a, b), __hfma2(a, a, b)), d = __hmin2(c, __hmax2(a, b)) + h2rcp(a)
        + h2exp2(b);
    const float2 both = __half22float2(d);
    ((float*)y)[i] = both.x + 2 * both.y + __hbgt2(a, b) + __low2float(__habs2(__hneg2(a))) +
        __high2float(__lowhigh2highlow(a))
        + __half2float(__hadd(__low2half(__heq2(a, a)), __high2half(__hgtu2(a, b))));""",
    lambda x, f: _pairs(f, _half),
    head="#include <cuda_fp16.h>",
    off=4e-3,
)
case(
    "pairs of bfloat",
    """
    const __nv_bfloat162 a = __floats2bfloat162_rn(f[i], f[(i + 1) % n]), b =
        __bfloat162bfloat162(__float2bfloat16(0.25f * (t % 8)));
    const __nv_bfloat162 c = __hadd2(__hmul2(a, b), __hfma2(a, a, b)), d = __hmin2(c, __hmax2(a, b)) +
        h2rcp(a) + h2exp2(b);
    const float2 both = __bfloat1622float2(d);
    ((float*)y)[i] = both.x + 2 * both.y + __hbgt2(a, b) + __low2float(__habs2(__hneg2(a))) +
        __high2float(__lowhigh2highlow(a))
        + __bfloat162float(__hadd(__low2bfloat16(__heq2(a, a)), __high2bfloat16(__hgtu2(a, b))));""",
    lambda x, f: _pairs(f, _bf16),
    head="#include <cuda_bf16.h>",
    off=3e-2,
    least=80,
)
case(
    "eight bits of floating point",
    """
    const __nv_fp8x2_e4m3 a(make_float2(f[i], -f[(i + 1) % n] * 9));
    const __nv_fp8x2_e5m2 b(make_float2(f[i], f[(i + 1) % n] * 1000));
    const float2 p = (float2)a, q = (float2)b;
    ((float*)y)[i] = p.x + p.y + q.x + q.y;""",
    lambda x, f: (
        lambda g: _fp8(f, 4, 448) + _fp8(-g * 9, 4, 448) + _fp8(f, 3, 57344) + _fp8(g * 1000, 3, 57344)
    )(np.roll(f, -1)).astype(np.float32),
    head="#include <cuda_fp8.h>",
)


def _fp8(f: np.ndarray, digits: int, most: float) -> np.ndarray:
    f = f.astype(np.float32).astype(np.float64)
    _, exponent = np.frexp(f)
    step = 2.0 ** (np.maximum(exponent, -5 if digits == 4 else -13) - digits)
    return np.clip(np.rint(f / step) * step, -most, most)


def _pairs(f: np.ndarray, of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    a = np.stack([of(f), of(np.roll(f, -1))]).astype(np.float64)
    b = np.stack([0.25 * (np.arange(N) % 8)] * 2)
    d = np.minimum(a * b + a * a + b, np.maximum(a, b)) + 1 / a + 2**b
    every = (a > b).all(0)
    return (d[0] + 2 * d[1] + every + a[0] + a[0] + 1 + (a[1] > b[1])).astype(np.float32)


def _rounded(x: np.ndarray, f: np.ndarray) -> np.ndarray:
    a, b = f * np.float32(1.37), np.float32(0.1) * np.arange(N, dtype=np.float32)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)

    def toward(exact: np.ndarray, to: float) -> np.ndarray:
        near = exact.astype(np.float32)
        wrong = near.astype(np.float64) < exact if to > 0 else near.astype(np.float64) > exact
        return np.where(wrong, np.nextafter(near, np.float32(to)), near).astype(np.float32).view(np.int32)

    whole = x.astype(np.float64)
    cut = np.where(whole < 0, toward(whole, math.inf), toward(whole, -math.inf))
    ten = (a * np.float32(10)).astype(np.float64)
    return (
        toward(wide_a + wide_b, math.inf)
        ^ toward(wide_a * wide_b, -math.inf)
        ^ np.rint(ten).astype(np.int32)
        ^ np.ceil(b).astype(np.int32)
        ^ np.trunc(a).astype(np.int32)
        ^ np.floor(-wide_b).astype(np.int32)
        ^ cut
        ^ toward(1.0 / (np.arange(N) + 1), math.inf)
    ).astype(np.int32)


def _parts(f: np.ndarray) -> np.ndarray:
    answers = []
    for i, v in enumerate(f.tolist()):
        a = v * (i % 3 - 1)
        m, e = math.frexp(a)
        negative = i % 3 == 0
        whole = math.trunc(a)
        r, by = a - whole, float(np.float32(0.7))
        quotient = round(v / by)
        rest = v - quotient * by
        # a / 0 · 0 is no number whatever a is; 1 / (a · 0) is infinite.
        answers.append(
            1
            + 2 * 1
            + 4 * negative
            + 8 * e
            + int(m * 1000) * 64
            + whole * 3
            + (r > 0)
            + (quotient & 7) * 11
            + (rest < 0)
            + math.frexp(v)[1]
            - 1
            + 1
            + 1
        )
    return np.array(answers, np.int32)


# --- lanes of a warp, groups ---

case(
    "votes",
    """
    const bool odd = x[i] & 1;
    y[i] = __ballot_sync(~0u, odd) ^ __all_sync(~0u, odd | 1) ^ 2 * __any_sync(~0u, odd) ^ __activemask()
        ^ ~0u;""",
    _of_warp(lambda w: np.int32(s32(sum(int(v & 1) << n for n, v in enumerate(w.tolist())) ^ 1 ^ 2))),
)
case(
    "matches",
    """int every;
    const unsigned m = __match_any_sync(~0u, x[i] & 3);
    y[i] = m ^ __match_all_sync(~0u, x[i] >> 31 >> 31 & 0, &every) ^ every;""",
    lambda x, f: np.concatenate(
        [
            [s32(sum(1 << n for n, v in enumerate(w) if v & 3 == a & 3) ^ 0xFFFFFFFF ^ 1) for a in w]
            for w in _warps(x).tolist()
        ]
    ).astype(np.int32),
)
case(
    "sums of a warp by one instruction",
    """y[i] = __reduce_add_sync(~0u, x[i]) ^ __reduce_min_sync(~0u, x[i])
    ^ __reduce_max_sync(~0u, (unsigned)x[i]) ^ __reduce_xor_sync(~0u, x[i]) ^ __reduce_and_sync(~0u, x[i]
        | 255);""",
    _of_warp(
        lambda w: np.int32(
            s32(
                int(w.sum(dtype=np.int64))
                ^ int(w.min())
                ^ int(_u(w).max())
                ^ int(np.bitwise_xor.reduce(w))
                ^ int(np.bitwise_and.reduce(w | 255))
            )
        )
    ),
    least=80,
)
case(
    "shuffles of all types",
    """
    const double d = __shfl_xor_sync(~0u, (double)f[i], 5);
    const long long l = __shfl_down_sync(~0u, (long long)x[i] << 9, 3, 16);
    ((double*)y)[i] = d + l + __shfl_sync(~0u, x[i], i + 7, 8) + __shfl_up_sync(~0u, f[i], 2u);""",
    lambda x, f: np.concatenate(
        [
            [
                float(g[n ^ 5])
                + ((w[n + 3] if n % 16 < 13 else w[n]) << 9)
                + w[n // 8 * 8 + (n + 7) % 8]
                + float(g[n - 2] if n > 1 else g[n])
                for n in range(32)
            ]
            for w, g in zip(_warps(x.astype(np.int64)).tolist(), _warps(f.astype(np.float64)), strict=True)
        ]
    ),
)
# --- atomics ---

case(
    "atomics of whole numbers",
    """
    int* of = (int*)z;
    atomicAdd(&of[0], x[i]); atomicMin(&of[1], x[i]); atomicMax(&of[2], x[i]);
        atomicMin((unsigned*)&of[3], x[i] & 7);
    atomicAnd(&of[4], x[i]); atomicOr(&of[5], x[i]); atomicXor(&of[6], x[i]);
        atomicInc((unsigned*)&of[7], 100);
    atomicDec((unsigned*)&of[8], 50); atomicSub(&of[9], 2); atomicAdd_block(&of[10], 1);
        atomicAdd_system(&of[11], 3);
    atomicAdd((unsigned long long*)(of + 12), 5000000000ull);
        atomicMax((long long*)(of + 14), (long long)x[i] << 8);
    __threadfence(); __syncthreads();
    if (t == 0) { if (atomicAdd(&of[20], 1) == 1) for (int k = 0; k < 16;
        ++k) y[k] = ((volatile int*)of)[k]; }
    if (i >= 16) y[i] = 0;""",
    lambda x, f: _atomics(x),
)
case(
    "atomics of floating point",
    """
    __shared__ float s; __shared__ double d;
    if (t == 0) s = 0, d = 0;
    __syncthreads();
    atomicAdd(&s, (float)(t & 3)); atomicAdd(&d, (double)t); atomicAdd(&z[0], 1.0f);
    atomicExch(&z[1], 4.0f); atomicAdd((double*)(z + 2), 0.5);
    unsigned* word = (unsigned*)&z[4]; unsigned old = *(volatile unsigned*)word, seen;
    do { seen = old; old = atomicCAS(word, seen, __float_as_uint(fmaxf(__uint_as_float(seen), f[i])));
        } while (old != seen);
    __syncthreads();
    ((float*)y)[i] = s + d;""",
    lambda x, f: np.full(N, 192 + 128 * 127 / 2, np.float32),
)
case(
    "atomics of halves",
    """
    half* h = (half*)z;
    atomicAdd(h, __float2half(1.0f)); atomicAdd((__half2*)(z + 1), __floats2half2_rn(1.0f, 2.0f));
    atomicAdd((__nv_bfloat162*)(z + 2), __floats2bfloat162_rn(1.0f, 0.5f));
        atomicAdd((__nv_bfloat16*)(z + 3), __float2bfloat16(1.0f));
    atomicCAS((unsigned short*)(z + 4) + 1, (unsigned short)0, (unsigned short)77);
    __threadfence(); __syncthreads();
    if (i >= 16) y[i] = 0;
    if (t == 0 && atomicAdd((int*)z + 9, 1) == 1) {
        for (int k = 4; k < 16; ++k) y[k] = 0;
        y[0] = __half2float(((volatile half*)z)[0]); const __half2 p = *(__half2*)(z + 1);
        y[1] = __low2float(p) + __high2float(p); y[2] = ((unsigned short*)(z + 4))[1];
        y[3] = __low2float(*(__nv_bfloat162*)(z + 2));
    }""",
    lambda x, f: np.array([256, 768, 77, 256] + [0] * 252, np.int32),
    head="#include <cuda_fp16.h>\n#include <cuda_bf16.h>",
    least=80,
)
case(
    "a sum of four at once",
    """
    atomicAdd((float4*)z + 1, make_float4(1, 2, 3, 4));
    atomicAdd((float2*)z, make_float2(1, 5));
    __threadfence(); __syncthreads();
    if (i >= 8) y[i] = 0;
    if (t == 0 && atomicAdd((int*)z + 9, 1) == 1) for (int k = 0; k < 8;
        ++k) y[k] = *(volatile float*)(z + k);""",
    lambda x, f: np.array([256, 1280, 0, 0, 256, 512, 768, 1024] + [0] * 248, np.int32),
    least=90,
)


def _atomics(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.int64)
    count, of_down = 0, 0
    for _ in range(N):
        count = 0 if count >= 100 else count + 1
        of_down = 50 if of_down == 0 or of_down > 50 else of_down - 1
    whole, most = 5000000000 * N, max(0, int(wide.max()) << 8)
    words = [
        int(wide.sum()),
        min(0, int(x.min())),
        max(0, int(x.max())),
        0,
        0,
        int(np.bitwise_or.reduce(x)),
        int(np.bitwise_xor.reduce(x)),
        count,
        of_down,
        -2 * N,
        N,
        3 * N,
        whole,
        whole >> 32,
        most,
        most >> 32,
    ]
    return np.array([s32(word) for word in words] + [0] * (N - 16), np.int32)


# --- memory ---

case(
    "accesses of all widths",
    """
    const char4 a = ((const char4*)x)[i]; const short2 b = ((const short2*)x)[i];
        const uchar1 c = ((const uchar1*)x)[i];
    const int4 d = ((const int4*)x)[i / 4]; const double2 e = ((const double2*)x)[i / 4];
        const longlong2 g = ((const longlong2*)x)[i / 4];
    __shared__ __align__(16) short s[1024]; ((short4*)s)[t] = make_short4(a.x, a.y, b.x, b.y);
        __syncthreads();
    y[i] = a.z + b.y + c.x + d.w + (int)(__double_as_longlong(e.y) >> 40) + (int)g.x + s[(t ^ 1) * 4 + 2];""",
    lambda x, f: (
        (
            _b(x)[:, 2]
            + _h(x)[:, 1]
            + x.view(np.uint8)[:N].astype(int)
            + x.reshape(-1, 4)[:, 3].repeat(4).astype(np.int64)
            + (x.view(np.int64).reshape(-1, 2)[:, 1].repeat(4) >> 40)
            + x.view(np.int64).reshape(-1, 2)[:, 0].repeat(4).astype(np.int32)
            + _h(x).reshape(-1, 2, 2)[:, ::-1].reshape(-1, 2)[:, 0]
        )
        .astype(np.int64)
        .astype(np.int32)
    ),
)
case(
    "hints",
    """
    y[i] = __ldg(&x[i]) + __ldcs(&x[i]) + __ldcg(&x[i]) + __ldca(&x[i]) + __ldlu(&x[i]);
    __stcs(&z[i], f[i]); __stwt(&z[i], f[i]); __stcg(&z[i], f[i]);
    const float4 v = __ldg((const float4*)f + i / 4); y[i] += v.x > 0;""",
    lambda x, f: (x.astype(np.int64) * 5 + 1).astype(np.int32),
)
case(
    "arrays of a thread",
    """
    int own[32];
    #pragma unroll 1
    for (int k = 0; k < 32; ++k) own[k] = x[(i + k) % n];
    #pragma unroll 1
    for (int a = 0; a < 32; ++a)
        for (int b = a + 1; b < 32; ++b) if (own[b] < own[a]) { const int c = own[a]; own[a] = own[b];
            own[b] = c; }
    y[i] = own[i % 32];""",
    lambda x, f: np.array([np.sort(np.roll(x, -i)[:32])[i % 32] for i in range(N)], np.int32),
)
case(
    "dynamic shared memory",
    """
    extern __shared__ int room[];
    room[t] = x[i];
    float* behind = (float*)(room + 128);
    behind[127 - t] = f[i];
    __syncthreads();
    ((float*)y)[i] = room[t ^ 64] % 100 + behind[t];""",
    lambda x, f: (np.fmod(x[np.arange(N) ^ 64], 100) + f.reshape(-1, 128)[:, ::-1].reshape(-1)).astype(
        np.float32
    ),
)
case(
    "constants and variables",
    """
    count = 0;
    const int at = table[x[i] & 7] + offsets[i & 1][t & 3];
    y[i] = at + sizes[1] + pair.first + (int)pair.second + *pointer + (text[2] == 'c');""",
    lambda x, f: (
        np.array([1, 2, 3, 5, 8, 13, 21, 34])[x & 7]
        + np.array([[1, 2, 3, 4], [10, 20, 30, 40]])[_i() & 1, _i() & 3]
        + 7
        + 5
        + 2
        + 5
        + 1
    ).astype(np.int32),
    head="""__constant__ int table[8] = {1, 2, 3, 5, 8, 13, 21, 34};
static __device__ int offsets[2][4] = {{1, 2, 3, 4}, {10, 20, 30, 40}};
__device__ const short sizes[3] = {6, 7, 8};
struct Pair { int first; double second; };
__constant__ Pair pair = {5, 2.5};
__device__ int five = 5;
__device__ int* pointer = &five;
__device__ const char text[] = "abc";
static __device__ volatile int count;""",
)
case(
    "clocks and sleep",
    """
    const long long begun = clock64(); const unsigned first = clock();
    __nanosleep(20);
    unsigned long long now; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    unsigned sm; asm("mov.u32 %0, %smid;" : "=r"(sm));
    y[i] = clock64() >= begun && clock() >= first && now + 1 && sm < 1000;""",
    lambda x, f: np.ones(N, np.int32),
)
case(
    "fences",
    """
    __shared__ volatile int ready; __shared__ int box;
    if (t == 0) ready = 0;
    __syncthreads();
    if (t == 0) { box = x[i]; __threadfence_block(); ready = 1; }
    if (t == 64) { while (!ready) __nanosleep(10); __threadfence_block(); y[i] = box; }
    else y[i] = 0;
    __threadfence(); __threadfence_system();""",
    lambda x, f: np.where(_i() % 128 == 64, x[_i() // 128 * 128], 0).astype(np.int32),
)
case(
    "acquire and release",
    """
    unsigned* flag = (unsigned*)z + 1;
    y[i] = 0;
    if (i == 0) {
        z[0] = 42;
        asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(1) : "memory");
    }
    if (i == 200) {
        unsigned seen;
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
            while (!seen);
        y[i] = z[0];
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(flag + 1) : "memory");
    }""",
    lambda x, f: np.where(_i() == 200, 42, 0).astype(np.int32),
)

# --- functions, control flow ---

case(
    "functions that are not inlined",
    """
    Vector v = scaled(make(x[i] & 15, f[i]), 3);
    y[i] = v.a[0] + (int)v.b + called(i) + twice(called, t) + (int)mean(f, i, n);""",
    lambda x, f: (
        (x & 15) * 3
        + (f * 3).astype(int)
        + (_i() * 7 + 1)
        + ((_i() % 128 * 7 + 1) * 7 + 1)
        + ((f + np.roll(f, -1)) / 2).astype(int)
    ).astype(np.int32),
    head="""
struct Vector { int a[3]; float b; };
__device__ __noinline__ Vector make(int a, float b) { Vector v; v.a[0] = a; v.a[1] = v.a[2] = 0; v.b = b;
    return v; }
__device__ __noinline__ Vector scaled(const Vector& of, int by) { Vector v = of; v.a[0] *= by; v.b *= by;
    return v; }
__device__ __noinline__ int called(int v) { if (v < 0) return 0; return v * 7 + 1; }
__device__ __forceinline__ int twice(int (*of)(int), int v) { return of(of(v)); }
__device__ __noinline__ float mean(const float* f, int i, int n) { return (f[i] + f[(i + 1) % n]) / 2; }""",
)
case(
    "recursion",
    "y[i] = fibonacci(t % 9) + greatest(1000 + t, 36);",
    lambda x, f: np.array(
        [[0, 1, 1, 2, 3, 5, 8, 13, 21][i % 128 % 9] + math.gcd(1000 + i % 128, 36) for i in range(N)],
        np.int32,
    ),
    head="""__device__ __noinline__ int fibonacci(int v) { return v < 2 ? v : fibonacci(v - 1) +
        fibonacci(v - 2); }
__device__ __noinline__ int greatest(int a, int b) { return b ? greatest(b, a % b) : a; }""",
)
case(
    "virtual functions and pointers to functions",
    """
    Twice a; Square b;
    const Shape* one = t & 1 ? (const Shape*)&a : (const Shape*)&b;
    y[i] = one->of(t) + chosen[x[i] & 1](t);""",
    lambda x, f: (lambda t: np.where(t & 1, 2 * t, t * t) + np.where(x & 1, t - 1, t + 1))(_i() % 128).astype(
        np.int32
    ),
    head="""
struct Shape { __device__ virtual int of(int v) const = 0; };
struct Twice : Shape { __device__ int of(int v) const override { return 2 * v; } };
struct Square : Shape { __device__ int of(int v) const override { return v * v; } };
__device__ int up(int v) { return v + 1; }
__device__ int down(int v) { return v - 1; }
__device__ int (*const chosen[2])(int) = {up, down};""",
)
case(
    "a switch",
    """
    int v = t;
    switch (x[i] & 15) {
        case 0: v *= 3; break; case 1: v += 7; case 2: v ^= 9; break; case 3: v = -v; break;
            case 4: v <<= 2; break;
        case 5: v = v * v; break; case 6: v %= 5; break; case 7: v = ~v; break; case 9: v -= 100; break;
            default: v = 1;
    }
    y[i] = v;""",
    lambda x, f: np.array([_switched(i % 128, a & 15) for i, a in enumerate(x.tolist())], np.int32),
)
case(
    "lambdas and templates",
    """
    auto add = [=](int a) { return a + x[i] % 100; };
    y[i] = folded<5>(add, t) + longest<int, 3>(t);""",
    lambda x, f: (_i() % 128 + 5 * np.fmod(x, 100) + (_i() % 128) * 3).astype(np.int32),
    head="""
template <int N, class F> __device__ int folded(F of, int v) { for (int k = 0; k < N; ++k) v = of(v);
    return v; }
template <class T, int K> __device__ T longest(T v) { T sum = 0; for (int k = 0; k < K; ++k) sum += v;
    return sum; }""",
)
case(
    "leaving early",
    """
    __shared__ int s[128];
    s[t] = x[i];
    __syncthreads();
    y[i] = 1;
    if (t >= 100) return;
    __syncthreads();
    y[i] = s[99 - t];""",
    lambda x, f: np.where(
        _i() % 128 < 100, x[np.where(_i() % 128 < 100, _i() // 128 * 128 + 99 - _i() % 128, 0)], 1
    ).astype(np.int32),
)
case(
    "counts of a barrier",
    """
    y[i] = __syncthreads_count(x[i] & 1) + 1000 * __syncthreads_or(x[i] == 77) + 2000 *
        __syncthreads_and(t < 128);""",
    lambda x, f: ((x & 1).reshape(-1, 128).sum(1).repeat(128) + 2000).astype(np.int32),
)
case(
    "an assertion that holds, and a trap that is not reached",
    """
    assert(n == 256); if (n < 0) __trap(); __builtin_assume(n > 0); if (n == 3) asm volatile("exit;");
        y[i] = x[i];""",
    lambda x, f: x,
)


def _switched(v: int, which: int) -> int:
    if which in (1, 2):
        return (v + 7 * (which == 1)) ^ 9
    table = {0: v * 3, 3: -v, 4: v << 2, 5: v * v, 6: v % 5, 7: ~v, 9: v - 100}
    return table.get(which, 1)


# --- products of matrices ---


def _squares(depth: int) -> Answer:
    def right(x: np.ndarray, f: np.ndarray) -> np.ndarray:
        small = (x & 7).astype(np.float64)
        a, b = small[: 16 * depth].reshape(16, depth), small[256 - 16 * depth :].reshape(depth, 16)
        return (a @ b + small.reshape(16, 16)).astype(np.float32).reshape(-1)

    return right


for _name, _kind, _factor, _depth in (
    ("bf16", "__nv_bfloat16", "__float2bfloat16", 16),
    ("tf32", "float", "wmma::__float_to_tf32", 8),
):
    case(
        f"wmma of {_name}",
        f"""
    using namespace nvcuda;
    __shared__ {_kind} a[256], b[256];
    __shared__ float c[256];
    for (int k = t; k < 256; k += 128) {{
        const float v = x[k] & 7;
        a[k] = {_factor}(v), b[k] = {_factor}((float)(x[(k + 256 - 16 * {_depth}) % 256] & 7)), c[k] = v;
    }}
    __syncthreads();
    if (i >= 32) return;
    wmma::fragment<wmma::matrix_a, 16, 16, {_depth}, KIND, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, {_depth}, KIND, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, {_depth}, float> sum;
    wmma::load_matrix_sync(left, a, {_depth});
    wmma::load_matrix_sync(right, b, 16);
    wmma::load_matrix_sync(sum, c, 16, wmma::mem_row_major);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync((float*)y, sum, 16, wmma::mem_row_major);""".replace(
            "KIND", "wmma::precision::tf32" if _name == "tf32" else _kind
        ),
        _squares(_depth),
        head="#include <mma.h>\n#include <cuda_bf16.h>",
        least=80,
    )

# --- copies in the background ---

case(
    "a pipeline of copies",
    """
    __shared__ int s[2][128];
    __pipeline_memcpy_async(&s[0][t], &x[i], 4); __pipeline_commit();
    __pipeline_memcpy_async(&s[1][t], &x[(i + 128) % n], 4); __pipeline_commit();
    __pipeline_wait_prior(1); __syncthreads();
    int v = s[0][127 - t];
    __pipeline_wait_prior(0); __syncthreads();
    y[i] = v ^ s[1][127 - t];""",
    lambda x, f: (lambda g: g ^ g[::-1])(x.reshape(2, 128)[:, ::-1]).reshape(-1),
    head="#include <cuda_pipeline.h>",
    least=80,
)
case(
    "barriers in shared memory",
    """
    __shared__ __mbarrier_t done;
    __shared__ int s[128];
    if (t == 0) __mbarrier_init(&done, 128);
    __syncthreads();
    s[t] = x[i];
    auto token = __mbarrier_arrive(&done);
    while (!__mbarrier_test_wait(&done, token)) { }
    y[i] = s[127 - t];
    const int v = y[i];
    token = __mbarrier_arrive(&done);
    while (!__mbarrier_test_wait(&done, token)) { }
    y[i] = v + s[(t + 1) % 128] * 0;""",
    lambda x, f: x.reshape(2, 128)[:, ::-1].reshape(-1),
    head="#include <cuda_awbarrier_primitives.h>",
    least=80,
)


case(
    "copies that a barrier counts",
    """
    __shared__ unsigned long long done;
    __shared__ int s[128];
    const unsigned on = (unsigned)__cvta_generic_to_shared(&done);
    const unsigned to = (unsigned)__cvta_generic_to_shared(&s[t]);
    if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" ::"r"(on) : "memory");
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + i) : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(on) : "memory");
    asm volatile("{ .reg .pred p; again: mbarrier.test_wait.parity.shared::cta.b64 p, [%0], 0; "
                 "@!p bra again; }"
                 ::"r"(on) : "memory");
    y[i] = s[127 - t];""",
    lambda x, f: x.reshape(2, 128)[:, ::-1].reshape(-1),
    least=80,
)

case(
    "halves of a warp that ask each other",
    """
    const unsigned half = 0xffffu << (t & 16);
    unsigned v = __any_sync(half, t % 32 == 3) + 2 * __all_sync(half, t % 32 < 20);
    v += __popc(__ballot_sync(half, x[i] > 0)) * 4 + __popc(__match_any_sync(half, t % 3)) * 256;
    int every;
    __match_all_sync(half, t % 32 < 16, &every);
    y[i] = v + every * 65536 + __popc(__match_all_sync(half, t % 32 < 17 ? 1 : t, &every)) * 131072;""",
    lambda x, f: (
        (_i() % 32 < 16) * (1 + 2 + 131072 * 16)
        + 4 * np.repeat((x > 0).reshape(-1, 16).sum(1), 16)
        + 256 * _alike()
        + 65536
    ).astype(np.int32),
)
case(
    "what all blocks read, and the last one writes",
    """
    __shared__ bool last;
    const int all = (int)z[t];
    __syncthreads();
    if (t == 0) {
        __threadfence();
        last = atomicAdd((unsigned*)z + n - 1, 1u) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last && t < 100) z[t] = 5;
    y[i] = all + 1;""",
    lambda x, f: np.ones(N, np.int32),
)
case(
    "memory that threads ask for",
    """
    int* mine = (int*)malloc(sizeof(int) * (t % 5 + 1));
    long long* other = new long long[2];
    if (mine == nullptr || other == nullptr) return;
    for (int k = 0; k <= t % 5; ++k) mine[k] = x[i] + k;
    other[1] = mine[t % 5];
    free(mine);
    y[i] = (int)other[1];
    delete[] other;
    if (malloc(size_t(1) << 40)) y[i] = 0;""",
    lambda x, f: x + (_i() % 128 % 5).astype(np.int32),
)
case(
    "cooperative groups",
    """
    namespace cg = cooperative_groups;
    __shared__ int s[128];
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<16>(block);
    s[block.thread_rank()] = x[i] & 1023;
    block.sync();
    int v = cg::reduce(tile, s[127 - t], cg::plus<int>()) + tile.shfl_xor(x[i] & 7, 1);
    v += cg::inclusive_scan(tile, 1) + tile.meta_group_rank();
    if (t % 3 == 0) {
        auto some = cg::coalesced_threads();
        v += some.size() * 1000 + some.thread_rank();
    }
    y[i] = v;""",
    lambda x, f: (
        np.repeat((x & 1023).reshape(2, 128)[:, ::-1].reshape(-1, 16).sum(1), 16)
        + (x & 7)[_i() ^ 1]
        + _i() % 16
        + 1
        + _i() % 128 // 16
        + _thirds()
    ).astype(np.int32),
    head="#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n"
    "#include <cooperative_groups/scan.h>",
)


def _alike() -> np.ndarray:
    """Of each half of a warp, how many threads have the same rest by three as this one."""
    rest = (_i() % 128 % 3).reshape(-1, 16)
    return (rest[:, :, None] == rest[:, None, :]).sum(2).reshape(-1)


def _thirds() -> np.ndarray:
    """Of each warp, times 1000, how many threads have a number that three divides; and which it is."""
    one = (_i() % 128 % 3 == 0).reshape(-1, 32)
    return np.where(one, 1000 * one.sum(1)[:, None] + one.cumsum(1) - 1, 0).reshape(-1)


def inputs() -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(45)
    x = draw.integers(-(2**31), 2**31, N).astype(np.int32)
    return x, (0.5 + 7.5 * draw.random(N)).astype(np.float32)


def text(case_: Case) -> str:
    """Kernel `mine`."""
    begin = "const int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x; (void)i; (void)t;"
    signature = "const int* x, const float* f, int* y, float* z, int n"
    return f'{case_.head}\nextern "C" __global__ void mine({signature}) {{\n{begin}\n{case_.body}\n}}\n'
