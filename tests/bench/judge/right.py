"""Right answers in plain NumPy, float32, of which each planted mistake gets one thing wrong. Written apart
from bench.judge, which explains mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from onnx.reference import ReferenceEvaluator

from kernels.cpu.common import counts, padded_hw, windows
from kernels.ops.conv import Conv
from kernels.ops.conv3d import Conv3d
from kernels.ops.conv_transpose import ConvTranspose
from kernels.ops.pool import Pool
from kernels.ops.pool_index import PoolIndex
from kernels.ops.resize import Resize
from tests.kernels import drawn

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


def resize(p: Resize, x: np.ndarray) -> np.ndarray:
    return ReferenceEvaluator(drawn.model(p)).run(None, {"in0": x.astype(np.float64)})[0]


def conv_transpose(p: ConvTranspose, x: np.ndarray, w: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
    """A convolution, by the turned window, of x with zeros between its elements and all around."""
    top, left = (p.kh - 1) * p.dilation_h, (p.kw - 1) * p.dilation_w
    wide = np.zeros((p.n, p.c, 2 * top + p.out_h + p.pad_top, 2 * left + p.out_w + p.pad_left))
    rows, columns = np.arange(p.h) * p.stride_h + top, np.arange(p.w) * p.stride_w + left
    rows, columns = rows[rows < wide.shape[2]], columns[columns < wide.shape[3]]
    wide[:, :, rows[:, None], columns] = x[:, :, : len(rows), : len(columns)]
    turned = w.reshape(p.group, p.c // p.group, p.m // p.group, p.kh, p.kw)[..., ::-1, ::-1]
    turned = turned.swapaxes(1, 2).reshape(p.m, p.c // p.group, p.kh, p.kw)
    shape = wide.shape[2] - top, wide.shape[3] - left
    q = Conv(p.n, p.c, *wide.shape[2:], p.m, p.kh, p.kw, *shape, 1, 1, 0, 0, 0, 0, p.dilation_h,
             p.dilation_w, p.group, b is not None)  # fmt: skip
    return conv(q, wide, turned, b)[..., p.pad_top :, p.pad_left :][..., : p.out_h, : p.out_w]


def conv3d(p: Conv3d, x: np.ndarray, w: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
    """A sum of convolutions of slices, one for each slice of the window."""
    d, h, wide = p.size
    axes = zip(p.out, p.stride, p.kernel, p.dilation, p.size, p.pad, strict=True)
    behind = [max(0, (o - 1) * s + (k - 1) * e + 1 - n - a) for o, s, k, e, n, a in axes]
    deep = np.pad(x.reshape(p.n, p.c, d, h, wide), ((0, 0), (0, 0), (p.pad[0], behind[0]), (0, 0), (0, 0)))
    w = w.reshape(p.m, p.c // p.group, *p.kernel)
    q = Conv(p.n, p.c, h, wide, p.m, *p.kernel[1:], *p.out[1:], *p.stride[1:], *p.pad[1:], *behind[1:],
             *p.dilation[1:], p.group)  # fmt: skip
    slices = [
        sum(
            conv(q, np.ascontiguousarray(deep[:, :, o * p.stride[0] + t * p.dilation[0]]), w[:, :, t])
            for t in range(p.kernel[0])
        )
        for o in range(p.out[0])
    ]
    y = np.stack(slices, axis=2)
    return y if b is None else y + b.reshape(-1, 1, 1, 1)


def pool_index(p: PoolIndex, x: np.ndarray) -> np.ndarray:
    """Window by window."""
    q = p.pool
    y = np.empty(q.output_shape, np.int64)
    for n, c, oy, ox in np.ndindex(*y.shape):
        rows = oy * q.stride_h - q.pad_top + np.arange(q.kh) * q.dilation_h
        columns = ox * q.stride_w - q.pad_left + np.arange(q.kw) * q.dilation_w
        rows, columns = rows[(rows >= 0) & (rows < q.h)], columns[(columns >= 0) & (columns < q.w)]
        part = x[n, c][np.ix_(rows, columns)]
        row, column = np.unravel_index(part.argmax(), part.shape)
        row, column = rows[row], columns[column]
        place = column * q.h + row if p.by_columns else row * q.w + column
        y[n, c, oy, ox] = (n * q.c + c) * q.h * q.w + place
    return y
