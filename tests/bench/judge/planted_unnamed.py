"""Mistakes that nobody has a name for, or that are two at once: what is said of them must be true
nevertheless, and mostly is no more than where and by how much."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernels.cpu.common import windows
from kernels.ops.conv import Conv
from kernels.ops.pool import Pool
from tests.bench.judge import right
from tests.bench.judge.planting import APART, CONV, answers

Array = np.ndarray


def _leaky(p: Conv, x: Array, w: Array, b: Array | None = None) -> Array:
    y = right.conv(replace(p, activation=None), x, w, b)
    return np.where(y > 0, y, 0.01 * y) if p.activation == "relu" else right.act(p, y)


def _of_eight_bits(p: Conv, x: Array, w: Array, b: Array | None = None) -> Array:
    step = np.abs(w).max() / 127
    return right.conv(p, x, (np.rint(w / step) * step).astype(np.float32), b)


def _two_at_once(p: Conv, x: Array, w: Array, b: Array | None = None) -> Array:
    return right.conv(p, x, w) + (np.arange(p.out_w) == p.out_w // 2)


def _every_other_in_half(p: Conv, x: Array, w: Array, b: Array | None = None) -> Array:
    y = right.conv(p, x, w, b)
    y[1::2] = y[1::2].astype(np.float16)
    return y


def _every_other_sign(p: Conv, x: Array, w: Array, b: Array | None = None) -> Array:
    return right.conv(p, x, w, b) * np.where(np.arange(p.m) % 2, -1, 1)[:, None, None]


def _cut_to_bfloat(p: Conv, x: Array, w: Array, b: Array | None = None) -> Array:
    bits = np.ascontiguousarray(right.conv(p, x, w, b)).view(np.uint32)
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


def _second_largest(p: Pool, x: Array) -> Array:
    seen = windows(p, right.padded(p, x, value=-9)).reshape(p.n, p.c, -1, p.out_h, p.out_w)
    return right.act(p, np.sort(seen, axis=2)[:, :, -2 if p.kh * p.kw > 1 else -1])


answers("conv", "conv: relu that leaks", _leaky)
answers("conv", "conv: weights of eight bits", _of_eight_bits)
answers("conv", "conv: bias left out, and a column of ones added", _two_at_once)
answers("conv", "conv: every other image in half precision", _every_other_in_half, "right at batch 1")
answers("conv", "conv: every other map's sign", _every_other_sign)
answers(
    "conv",
    "conv: images read with rows and columns swapped",
    lambda p, x, w, b=None: right.conv(p, x.swapaxes(2, 3).reshape(x.shape), w, b),
)
answers("conv", "conv: no more than 1", lambda p, x, w, b=None: np.minimum(right.conv(p, x, w, b), 1))
answers("conv", "conv: a constant", lambda p, x, w, b=None: right.conv(p, x, w, b) * 0 + 0.5)
answers(
    "conv",
    "conv: as many times as there are images, and once more",
    lambda p, x, w, b=None: right.conv(p, x, w, b) * (1 + p.n),
    "factor that depends on the shape",
)
answers(
    "conv",
    "conv: half as large where there are groups",
    lambda p, x, w, b=None: right.conv(p, x, w, b) * (0.5 if p.group > 1 else 1),
    r"where it is wrong, every element is 0\.5 times",
)
answers("conv", "conv: answer cut to bfloat16", _cut_to_bfloat, "bfloat16")
answers("pool", "pool: second largest", _second_largest)
answers("lrn", "lrn: alpha squared", lambda p, x: right.lrn(x, p.size, p.alpha**2 / p.size, p.beta, p.bias))
answers(
    "unary", "unary: tanh by a fraction", lambda p, x: np.clip(x * (27 + x * x) / (27 + 9 * x * x), -1, 1)
)
answers("pad", "pad: half the value", lambda p, x: right.pads(p, x, constant_values=p.value / 2))


def _no_bias_in_batches(p: Conv, x: np.ndarray, w: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
    return right.conv(p, x, w, None if p.n > 1 else b)


def _sign_or_no_bias(p: Conv, x: np.ndarray, w: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
    return -right.conv(p, x, w, b) if p.group > 1 else right.conv(p, x, w)


answers("conv", "conv: bias left out of batches", _no_bias_in_batches, into=APART)
answers("conv", "conv: two at once", _sign_or_no_bias, params=replace(CONV, activation=None), into=APART)
