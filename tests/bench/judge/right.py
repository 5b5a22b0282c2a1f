"""Right answers in plain NumPy, float32, of which each planted mistake gets one thing wrong. Written apart
from bench.judge, which explains mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from kernels.cpu.common import counts, padded_hw, windows
from kernels.ops.conv import Conv
from kernels.ops.pool import Pool

UNARY: dict[str | None, Callable[[np.ndarray], np.ndarray]] = {
    None: lambda y: y,
    "identity": lambda y: y,
    "relu": lambda y: np.maximum(y, 0),
    "relu6": lambda y: np.minimum(np.maximum(y, 0), 6),
    "tanh": np.tanh,
    "sigmoid": lambda y: 1 / (1 + np.exp(-y)),
}
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


def act(p: Any, y: np.ndarray) -> np.ndarray:
    return UNARY[p.activation](y)


def padded(p: Conv | Pool, x: np.ndarray, mode: str = "constant", value: float = 0) -> np.ndarray:
    """The images with their padding, and with what the last window reaches beyond it."""
    high, wide = padded_hw(p)
    after = (high - p.h - p.pad_top, wide - p.w - p.pad_left)
    around = ((0, 0), (0, 0), (p.pad_top, max(0, after[0])), (p.pad_left, max(0, after[1])))
    how = {"constant_values": value} if mode == "constant" else {}
    return np.pad(x, around, mode, **how)[:, :, :high, :wide]  # type: ignore[call-overload,no-any-return]


def products(p: Conv, full: np.ndarray, w: np.ndarray, dtype: Any = np.float32) -> np.ndarray:
    """The sum over padded images, without bias and activation."""
    seen = windows(p, np.ascontiguousarray(full, dtype))
    y = np.empty((p.n, p.m, p.out_h, p.out_w), dtype)
    channels, maps = p.c // p.group, p.m // p.group
    for g in range(p.group):
        part, of = slice(g * maps, (g + 1) * maps), slice(g * channels, (g + 1) * channels)
        y[:, part] = np.einsum("mcrs,ncrsab->nmab", w[part].astype(dtype), seen[:, of])
    return y


def shift(y: np.ndarray, b: np.ndarray | None) -> np.ndarray:
    return y if b is None else y + b.reshape(-1, 1, 1).astype(y.dtype)


def conv(p: Conv, x: np.ndarray, w: np.ndarray, b: np.ndarray | None = None, **how: Any) -> np.ndarray:
    return act(p, shift(products(p, padded(p, x, **how), w), b))


def as_if(p: Conv, x: np.ndarray, w: np.ndarray, b: np.ndarray | None, **other: Any) -> np.ndarray:
    """The convolution of other strides, padding, …, with just as many outputs, zeros beyond the image."""
    return conv(replace(p, **other), x, w, b)


def pool(p: Pool, x: np.ndarray, **other: Any) -> np.ndarray:
    """other: fields of p that are taken otherwise; the outputs are as many."""
    p = replace(p, **other)
    seen = windows(p, padded(p, x, value=-np.inf if p.kind == "max" else 0))
    if p.kind == "max":
        return act(p, seen.max(axis=(2, 3)))
    return act(p, seen.sum(axis=(2, 3)) / counts(p))


def lrn(x: np.ndarray, size: int, alpha: float, beta: float, bias: float, before: int | None = None,
        squares: np.ndarray | None = None) -> np.ndarray:  # fmt: skip
    """alpha: already divided by the size. x: (n, c, …)."""
    squares = x * x if squares is None else squares
    before = (size - 1) // 2 if before is None else before
    total = np.zeros_like(x)
    for c in range(x.shape[1]):
        low, high = max(0, c - before), max(0, c - before + size)
        total[:, c] = squares[:, low:high].sum(axis=1)
    return x / (bias + alpha * total) ** np.float32(beta)


def gemm(p: Any, a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
    y = p.alpha * (a.swapaxes(1, 2) if p.trans_a else a) @ (b.swapaxes(1, 2) if p.trans_b else b)
    return act(p, y if c is None else y + p.beta * c)


def softmax(x: np.ndarray, axis: int = 1, log: bool = False) -> np.ndarray:
    moved = x - x.max(axis=axis, keepdims=True)
    powers = np.exp(moved)
    total = powers.sum(axis=axis, keepdims=True)
    return moved - np.log(total) if log else powers / total


def pads(p: Any, x: np.ndarray, begin: Any = None, end: Any = None, **how: Any) -> np.ndarray:
    """What is negative cuts."""
    begin, end = begin or p.begin, end or p.end
    x = x[tuple(slice(max(0, -b), d + min(0, e)) for d, b, e in zip(x.shape, begin, end, strict=True))]
    around = [(max(0, b), max(0, e)) for b, e in zip(begin, end, strict=True)]
    mode = how.pop("mode", p.mode)
    if mode == "constant":
        how.setdefault("constant_values", p.value)
    return np.pad(x, around, mode, **how)  # type: ignore[no-any-return]


def bfloat16(x: np.ndarray) -> np.ndarray:
    """Rounded to eight significant bits."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x8000) & np.uint32(0xFFFF0000)).view(np.float32)
