"""The compiled CPU rungs of eight-bit products at sizes at which they work in several parts, on processors
with and without VNNI: sums are those of 64-bit integers, and a tie of the last scale is one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernels import numba_support, registry
from kernels.cpu import common, compiled, dots, load
from kernels.ops._quantized import Quantized
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.qadd import QAdd
from kernels.ops.qconv import QConv
from kernels.ops.qgemm import QGemm
from tests.kernels.quantized_cases import inputs as drawn_inputs

Array = np.ndarray

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(numba_support.unavailable()), reason="Numba is not installed"),
]


def conv(n: int, c: int, size: int, m: int, k: int, stride: int, pad: int, group: int) -> Conv:
    out = (size + 2 * pad - k) // stride + 1
    return Conv(
        n, c, size, size, m, k, k, out, out, stride_h=stride, stride_w=stride, pad_top=pad, pad_left=pad,
        pad_bottom=pad, pad_right=pad, group=group,
    )  # fmt: skip


# More outputs than a part has, channels and sums that are multiples of nothing; batches of 1, 3, 7 and 130;
# in each way to choose the numbers of a word, with outputs and with maps as lanes, several images at once.
PRODUCTS: list[Quantized] = [
    QConv(conv(1, 3, 61, 21, 11, 4, 0, 1)),
    QConv(conv(3, 34, 13, 23, 3, 1, 1, 1)),
    QConv(conv(7, 6, 9, 14, 5, 2, 2, 2)),
    QConv(conv(3, 21, 27, 37, 3, 2, 1, 1)),
    QConv(conv(7, 68, 2, 70, 3, 1, 1, 1)),
    QConv(conv(130, 9, 4, 51, 3, 1, 1, 1)),
    QConv(conv(3, 7, 29, 7, 3, 1, 1, 7)),
    QConv(conv(3, 19, 14, 19, 3, 1, 1, 19)),
    QConv(conv(2, 5, 29, 10, 5, 2, 2, 5)),
    QConv(conv(1, 4, 33, 4, 4, 3, 0, 4)),
    QConv(conv(130, 3, 5, 3, 3, 1, 1, 3)),
    QGemm(Gemm(1, 213, 131, trans_b=True)),
    QGemm(Gemm(7, 83, 64)),
    QGemm(Gemm(131, 205, 45, trans_b=True)),
]
SCALE = np.float32(
    0.051
)  # of the answer; half of it of the sum: odd sums are ties, which its reciprocal moves


def sums(p: Quantized, x: Array, weight: Array, x_zero: Array, weight_zero: Array) -> Array:
    """In 64 bits."""
    left, right = x.astype(np.int64) - int(x_zero[0]), weight.astype(np.int64)
    if isinstance(p.product, Gemm):
        g = p.product
        right = right.reshape(g.n, g.k).T if g.trans_b else right.reshape(g.k, g.n)
        return left.reshape(g.m, g.k) @ (right - weight_zero.astype(np.int64))
    c = p.product
    right = right.reshape(c.m, -1) - weight_zero.astype(np.int64)[:, None]
    pads = ((0, 0), (0, 0), (c.pad_top, c.pad_bottom), (c.pad_left, c.pad_right))
    seen = common.windows(c, np.pad(left.reshape(c.n, c.c, c.h, c.w), pads))
    columns = seen.reshape(c.n, c.group, p.terms, -1)
    return (right.reshape(c.group, c.m // c.group, -1) @ columns).reshape(p.output_shape)


def run(p: Quantized, inputs: list[Array]) -> Array:
    lone = isinstance(p, QConv) and p.depthwise
    kernel = load(registry.find("cpu", p.op, "depthwise" if lone else "dot_tiles"))
    y = np.zeros(p.output_shape, p.out_dtype)
    scratch = np.full(-(-kernel.workspace(p) // 4), np.nan, np.float32)
    packed = zip(inputs, kernel.pack(p, list(inputs)), strict=True)
    call = kernel.bind(p, [of if made is None else made for of, made in packed], y, scratch)
    call()
    if call.images > 1:  # some images after the others, as a program does it
        whole = y.copy()
        y[...] = 0
        for low, high in ((0, 1), (1, call.images)):
            call.step(call.by_images.ctypes.data, low, high, scratch.ctypes.data)
        np.testing.assert_array_equal(y, whole)
    return y


def checked(p: Quantized, seed: int) -> None:
    p = replace(p, weight_zeros=p.channels)
    inputs = drawn_inputs(p, seed)
    right = sums(p, *inputs)
    np.testing.assert_array_equal(run(p, inputs), right.reshape(p.output_shape))
    low, high = (0, 255) if seed % 2 else (-128, 127)
    zero, to = (100, "uint8") if seed % 2 else (-7, "int8")
    made = replace(p, to=to, out_scale=float(SCALE), out_zero=zero, low=low, high=high)
    # One sum of each channel becomes 0, 1, 2, …, and half of these are ties.
    of_channel = right[0] if isinstance(p.product, Gemm) else right[0, :, 0, 0]
    bias = (np.arange(p.channels) % 200 - of_channel).astype(np.int32)
    behind = [bias, np.full(p.channels, SCALE.astype(np.float64) / 2)]
    right = right + (bias if isinstance(p.product, Gemm) else bias[:, None, None])
    expected = np.clip(np.rint(right / 2) + zero, low, high).astype(to)
    np.testing.assert_array_equal(run(made, [*inputs, *behind]), expected.reshape(p.output_shape))
    # Now each channel has an answer nearer to half-way between two steps than float32 can tell.
    random, step = np.random.default_rng(seed), SCALE.astype(np.float64)
    near = random.integers(-100, 100, p.channels) + 0.5 + random.choice([-1, 1], p.channels) * 2.0**-22
    shift = random.uniform(-200, 200, p.channels)
    of_channel = np.where(of_channel + bias == 0, 1, of_channel + bias)
    scale = (near - shift) / of_channel
    column = (slice(None),) if isinstance(p.product, Gemm) else (slice(None), None, None)
    real = right * (scale * step)[column] + (shift * step)[column]
    expected = np.clip(np.rint(real / step) + zero, low, high).astype(to)
    found = run(replace(made, shifted=True), [*inputs, bias, scale * step, shift * step])
    np.testing.assert_array_equal(found, expected.reshape(p.output_shape))


@pytest.mark.parametrize("p", PRODUCTS, ids=lambda p: p.product.words)
def test_sums_are_exact_and_ties_go_to_the_even_neighbour(p: Quantized) -> None:
    for seed, (dtype, weight_dtype) in enumerate(
        [("int8", "int8"), ("uint8", "int8"), ("uint8", "uint8"), ("int8", "uint8")]
    ):
        checked(replace(p, dtype=dtype, weight_dtype=weight_dtype), seed)


EVERY = np.arange(256, dtype=np.uint8)


def in_float32(p: QAdd) -> Array:
    """What a sum of every two bytes becomes without a look at how near it is to half-way."""
    steps = np.float64([p.a_scale, p.b_scale]) / p.out_scale
    added = p.out_zero - p.a_zero * steps[0] - p.b_zero * steps[1]
    *short, moved = np.float32([*steps, added]).astype(np.float64)
    a, b = (EVERY.view(of).astype(np.float64) for of in (p.dtype, p.other))
    total = (a[:, None] * short[0] + (b * short[1] + moved).astype(np.float32)).astype(np.float32)
    return np.rint(np.clip(total, p.low, p.high)).astype(p.to).reshape(-1)


def rounded_once(p: QAdd) -> Array:
    a, b = (EVERY.view(of).astype(np.float64) for of in (p.dtype, p.other))
    real = (a[:, None] - p.a_zero) * p.a_scale + (b - p.b_zero) * p.b_scale
    return np.clip(np.rint(real / p.out_scale) + p.out_zero, p.low, p.high).astype(p.to).reshape(-1)


@pytest.mark.parametrize(("dtype", "other", "to"), [("uint8", "uint8", "int8"), ("int8", "uint8", "uint8")])
def test_every_sum_of_two_bytes_is_rounded_right(dtype: str, other: str, to: str) -> None:
    random, told = np.random.default_rng(1), 0
    a, b = np.repeat(EVERY, 256).view(dtype), np.tile(EVERY, 256).view(other)
    kernel = load(registry.find("cpu", "qadd", "one_pass"))
    held = np.iinfo(to)
    for size in (1, 7, *[65536] * 40):
        scales = random.uniform(0.01, 0.1, 3).astype(np.float32).tolist()
        zeros = [int(random.integers(np.iinfo(of).min, np.iinfo(of).max + 1)) for of in (dtype, other, to)]
        p = QAdd(
            size, scales[0], zeros[0], scales[1], zeros[1], scales[2], zeros[2], held.min, held.max, dtype,
            other, to,
        )  # fmt: skip
        expected = rounded_once(p)
        told += not np.array_equal(in_float32(p), expected)
        y, scratch = np.zeros(size, to), np.zeros(-(-kernel.workspace(p) // 4), np.float32)
        kernel.bind(p, [a[-size:], b[-size:]], y, scratch)()
        np.testing.assert_array_equal(y, expected[-size:])
    assert told >= 5, "none of these is lost where float32 alone decides"


@pytest.mark.sampled(4, "long")
@pytest.mark.parametrize(
    ("has", "p"),
    [({}, PRODUCTS[-2]), ({"avxvnni": True}, PRODUCTS[3])],
    ids=["none", "of 256 bits"],
)
def test_a_processor_without_the_widest_instruction_gets_the_same(
    has: dict[str, bool], p: Quantized, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has.items() <= dots.features().items():
        pytest.skip("this processor has no such instruction")
    asked = []
    monkeypatch.setattr(dots, "features", lambda: asked.append(1) or has)
    monkeypatch.setattr(compiled, "object_file", lambda name, make, most=0: make())
    monkeypatch.setitem(globals(), "load", load.__wrapped__)
    p = replace(p, dtype="int8", weight_zeros=p.channels)
    inputs = drawn_inputs(p, 0)
    np.testing.assert_array_equal(run(p, inputs), sums(p, *inputs).reshape(p.output_shape))
    assert asked, "it was not compiled anew"
