"""As tests.kernels.drawn and cuda_cases, of products of eight-bit numbers.

The answers are exact: sums in 64-bit integers, what is made of them in rational numbers, and rounded once,
halves to the even neighbour. Some scales are powers of two, so that many answers are ties.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from kernels.ops import Params, sized
from kernels.ops._quantized import EIGHT_BITS, Quantized
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.qconv import QConv
from kernels.ops.qgemm import QGemm

Array = np.ndarray
TO = ("int32", "float32", *EIGHT_BITS)


def within(to: str) -> tuple[int, int]:
    held = np.iinfo(to if to in EIGHT_BITS else "uint8")
    return int(held.min), int(held.max)


def behind(p: Quantized, to: str, shifted: bool, several: bool, closer: bool) -> Quantized:
    """`p` with an answer of this type. several: a zero point a channel; closer: held as a Relu does."""
    low, high = within(to)
    made = replace(p, to=to, shifted=shifted and to != "int32", weight_zeros=p.channels if several else 1)
    if to not in EIGHT_BITS:
        return made
    zero = low + 100
    return replace(made, out_scale=0.25, out_zero=zero, low=zero if closer else low, high=high)


@st.composite
def _told(draw, p: Quantized) -> Quantized:
    types = {name: draw(st.sampled_from(EIGHT_BITS)) for name in ("dtype", "weight_dtype")}
    flags = [draw(st.booleans()) for _ in range(3)]
    return behind(replace(p, **types), draw(st.sampled_from(TO)), *flags)


@st.composite
def qconv(draw) -> QConv:
    from tests.kernels import drawn  # which has these shapes in its list

    conv = replace(draw(drawn.conv()), bias=False, activation=None)
    return draw(_told(QConv(conv)))


@st.composite
def qgemm(draw) -> QGemm:
    m, n, k = (draw(st.integers(1, 9)) for _ in range(3))
    batch = draw(st.sampled_from([1, 1, 3]))
    alone = draw(st.sampled_from(["", "a", "b"])) if batch > 1 else "ab"
    product = Gemm(m, n, k, trans_b=draw(st.booleans()), batch=batch, stride_a=0 if "a" in alone else m * k,
                   stride_b=0 if "b" in alone else n * k)  # fmt: skip
    return draw(_told(QGemm(product)))


DRAWN: dict[str, Any] = {"qconv": qconv(), "qgemm": qgemm()}


def inputs(p: Quantized, seed: int = 0) -> list[Array]:
    """Every number that eight bits hold, the ends more often; scales that are powers of two or are not."""
    random = np.random.default_rng(seed)
    arrays: list[Array] = []
    for place, (shape, name) in enumerate(zip(p.input_shapes, p.input_dtypes, strict=True)):
        if name in EIGHT_BITS:
            low, high = within(name)
            values = random.integers(low, high + 1, shape)
            ends = random.random(shape) < 0.1
            arrays.append(np.where(ends, random.choice([low, high], shape), values).astype(name))
        elif name == "int32":
            arrays.append(random.integers(-(2**17), 2**17, shape).astype(name))
        elif place == 5:
            scale = (
                np.exp2(random.integers(-14, -10, shape)) if seed % 2 else random.uniform(1e-4, 1e-3, shape)
            )
            arrays.append(scale.astype(np.float32).astype(np.float64))
        else:
            arrays.append(np.rint(random.uniform(-64, 64, shape)) / 8)
    return arrays


def sums(p: Quantized, x: Array, weight: Array, x_zero: Array, weight_zero: Array) -> Array:
    """In 64 bits, tap by tap."""
    x = x.reshape(p.input_shapes[0]).astype(np.int64) - int(x_zero.reshape(-1)[0])
    weight, zeros = weight.reshape(p.input_shapes[1]).astype(np.int64), weight_zero.astype(np.int64)
    if isinstance(p.product, Gemm):
        b = weight.swapaxes(1, 2) if p.product.trans_b else weight
        return np.broadcast_to(x @ (b - zeros.reshape(1, 1, -1)), p.output_shape)
    c = p.product
    weight = weight - zeros.reshape(-1, 1, 1, 1)
    y = np.zeros(p.output_shape, np.int64)
    maps, depth = c.m // c.group, c.c // c.group
    for r, s, oy, ox in itertools.product(*map(range, (c.kh, c.kw, c.out_h, c.out_w))):
        iy, ix = (
            oy * c.stride_h - c.pad_top + r * c.dilation_h,
            ox * c.stride_w - c.pad_left + s * c.dilation_w,
        )
        if 0 <= iy < c.h and 0 <= ix < c.w:
            for g in range(c.group):
                of = slice(g * maps, (g + 1) * maps)
                y[:, of, oy, ox] += x[:, g * depth : (g + 1) * depth, iy, ix] @ weight[of, :, r, s].T
    return y


def answer(p: Quantized, *given: Array) -> Array:
    """Exact; float32 is rounded by whoever compares."""
    whole = sums(p, *given[:4])
    if p.to == "int32":
        return whole.astype(np.int32)
    axis = 1 if isinstance(p, QConv) else 2
    channel = np.indices(whole.shape)[axis].reshape(-1)
    bias, scale, *shift = given[4:]
    scales = [Fraction(float(value)) for value in scale]
    shifts = [Fraction(float(value)) for value in shift[0]] if shift else [Fraction(0)] * p.channels
    out = Fraction(float(np.float32(p.out_scale)))
    found = []
    for value, at in zip(whole.reshape(-1).tolist(), channel.tolist(), strict=True):
        real = (value + int(bias[at])) * scales[at] + shifts[at]
        if p.to == "float32":
            found.append(float(real))
        else:
            found.append(min(max(round(real / out) + p.out_zero, p.low), p.high))  # halves to even
    return np.array(found, np.float64 if p.to == "float32" else p.to).reshape(whole.shape)


def _products() -> Iterator[Quantized]:
    yield QConv(sized(Conv(2, 3, 9, 11, 5, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1)))
    yield QConv(sized(Conv(1, 4, 7, 8, 6, 2, 3, 0, 0, 2, 1, 0, 2, 1, 0, 1, 2, group=2)))
    yield QConv(sized(Conv(1, 6, 8, 8, 6, 3, 3, 0, 0, 2, 2, 1, 1, 1, 1, group=6)))
    yield QConv(sized(Conv(1, 70, 5, 5, 67, 1, 1, 0, 0)))
    yield QConv(sized(Conv(7, 48, 3, 3, 34, 1, 1, 0, 0)))
    yield QConv(sized(Conv(3, 19, 6, 5, 9, 3, 2, 0, 0, 1, 1, 2, 1, 2, 0)))
    yield QGemm(Gemm(1, 10, 84, trans_b=True))
    yield QGemm(Gemm(5, 7, 9))
    # Rows of whole 16 bytes, and of so many that warps share a column.
    yield QGemm(Gemm(3, 21, 1040, trans_b=True))
    yield QGemm(Gemm(7, 37, 80, trans_b=True))
    yield QGemm(Gemm(67, 70, 45, trans_b=True))
    yield QGemm(Gemm(33, 65, 130))
    yield QGemm(Gemm(4, 6, 10, batch=3, stride_a=40, stride_b=60))
    yield QGemm(Gemm(4, 6, 10, batch=3, stride_a=0, stride_b=60, trans_b=True))


def cases(op: str, rng: np.random.Generator) -> Iterator[tuple[Params, tuple[Array | None, ...], Array]]:
    """As the makers of cuda_cases: every pair of types, every type of the answer."""
    ways = itertools.cycle(itertools.product(EIGHT_BITS, EIGHT_BITS, TO, (False, True)))
    for product in (p for p in _products() if p.op == op):
        for number in range(7):
            dtype, weight_dtype, to, flag = next(ways)
            p = replace(product, dtype=dtype, weight_dtype=weight_dtype)
            p = behind(p, to, shifted=flag, several=number % 3 == 0, closer=number % 2 == 0)
            given = inputs(p, int(rng.integers(1 << 20)))
            yield p, (*given, *(None,) * (p.most_inputs - len(given))), answer(p, *given)
