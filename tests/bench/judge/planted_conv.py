"""Mistakes of convolutions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernels.ops.conv import Conv
from tests.bench.judge import right
from tests.bench.judge.planting import CONV, answers, planted

Array = np.ndarray
PLAIN = replace(CONV, group=1, activation=None)


def _conv(name: str, wrong: Any, *says: str, params: Conv | None = None) -> None:
    answers("conv", name, wrong, *says, params=params)


def _but(w: Array, *place: Any) -> Array:
    """The weights with zeros at a place."""
    w = w.copy()
    w[place] = 0
    return w


def _late(p: Conv, x: Array, w: Array, b: Array | None = None) -> Array:
    return right.shift(right.conv(p, x, w), b)


def _linear(p: Conv, x: Array, w: Array, b: Array | None = None) -> Array:
    """No bounds are checked along a row: what lies before it in memory is read."""
    flat = np.concatenate([np.zeros(999, np.float32), x.reshape(-1), np.zeros(999, np.float32)])
    n, c, h, w_ = (
        np.arange(size) for size in (p.n, p.c, p.h + p.pad_top + p.pad_bottom, p.w + p.pad_left + 9)
    )
    rows, columns = h - p.pad_top, w_ - p.pad_left
    place = ((n[:, None] * p.c + c)[..., None] * p.h + rows)[..., None] * p.w + columns
    full = flat[place + 999] * ((rows >= 0) & (rows < p.h))[:, None]
    high, wide = (p.h + p.pad_top + p.pad_bottom, p.w + p.pad_left + p.pad_right)
    return right.act(p, right.shift(right.products(p, full[:, :, :high, :wide], w), b))


# ------------------------------------------------------------------------------------------------- padding

_conv(
    "conv: padding ignored",
    lambda p, x, w, b=None: right.as_if(p, x, w, b, pad_top=0, pad_left=0),
    "padding is ignored",
)
_conv(
    "conv: one row of padding too many at the top",
    lambda p, x, w, b=None: right.as_if(p, x, w, b, pad_top=p.pad_top + 1),
    "off by one: one more at the top;",
)
_conv(
    "conv: one column of padding too few at the left",
    lambda p, x, w, b=None: right.as_if(p, x, w, b, pad_left=max(0, p.pad_left - 1)),
    "off by one: one less at the left;",
)
_conv(
    "conv: edges repeated instead of zeros",
    lambda p, x, w, b=None: right.conv(p, x, w, b, mode="edge"),
    "padding repeats the edge",
)
_conv(
    "conv: reflected instead of zeros",
    lambda p, x, w, b=None: right.conv(p, x, w, b, mode="reflect"),
    "padding reflects",
)
_conv(
    "conv: wrapped around instead of zeros",
    lambda p, x, w, b=None: right.conv(p, x, w, b, mode="wrap"),
    "padding wraps",
    "wrong only where (there is padding|a window reaches)",
)
_conv(
    "conv: padding of ones",
    lambda p, x, w, b=None: right.conv(p, x, w, b, value=1),
    "wrong only where (there is padding|a window reaches)",
)
_conv(
    "conv: columns are not held against the row's ends",
    _linear,
    "neighbouring row",
    "wrong only where (there is padding|a window reaches)",
)
_conv(
    "conv: padding at the beginning and the end swapped",
    lambda p, x, w, b=None: right.as_if(p, x, w, b, pad_top=p.pad_bottom, pad_left=p.pad_right),
    "beginning and .* end .*swapped",
    params=replace(CONV, pad_top=2, pad_bottom=0, pad_left=0, pad_right=2),
)

# ------------------------------------------------------------------------------------ weights and channels

_conv(
    "conv: last tap left out",
    lambda p, x, w, b=None: right.conv(p, x, _but(w, ..., -1, -1), b),
    "last tap .*left out",
)
_conv(
    "conv: first tap left out",
    lambda p, x, w, b=None: right.conv(p, x, _but(w, ..., 0, 0), b),
    "first tap .*left out",
)
_conv(
    "conv: last row of the kernel left out",
    lambda p, x, w, b=None: right.conv(p, x, _but(w, ..., -1, slice(None)), b),
    "last row of the kernel is left out",
)
_conv(
    "conv: last column of the kernel left out",
    lambda p, x, w, b=None: right.conv(p, x, _but(w, ..., -1), b),
    "last column of the kernel is left out",
)
_conv(
    "conv: last channel left out",
    lambda p, x, w, b=None: right.conv(p, x, _but(w, slice(None), -1), b),
    "last channel is left out",
    "last channel of .* left out",
)
_conv(
    "conv: first channel left out",
    lambda p, x, w, b=None: right.conv(p, x, _but(w, slice(None), 0), b),
    "first channel is left out",
    "first channel of .* left out",
)
_conv(
    "conv: very last product left out",
    lambda p, x, w, b=None: right.conv(p, x, _but(w, slice(None), -1, -1, -1), b),
    "last product",
)
_conv(
    "conv: channels beyond the last whole four left out",
    lambda p, x, w, b=None: right.conv(p, x, _but(w, slice(None), slice(w.shape[1] // 4 * 4, None)), b),
    "beyond the last whole 4",
)
_conv("conv: kernel flipped", lambda p, x, w, b=None: right.conv(p, x, w[..., ::-1, ::-1], b), "flipped")
_conv(
    "conv: kernel upside down",
    lambda p, x, w, b=None: right.conv(p, x, w[..., ::-1, :], b),
    "kernel's rows .*reversed",
    "kernel is upside down",
)
_conv(
    "conv: kernel's rows and columns swapped",
    lambda p, x, w, b=None: right.conv(p, x, w.swapaxes(2, 3) if p.kh == p.kw else w, b),
    "rows and columns are swapped",
)
_conv(
    "conv: maps and channels of the weights swapped",
    lambda p, x, w, b=None: right.conv(p, x, w.reshape(w.shape[1], p.m, p.kh, p.kw).swapaxes(0, 1), b),
    "maps and channels .*swapped",
)
_conv(
    "conv: weights read with channels last",
    lambda p, x, w, b=None: right.conv(p, x, w.reshape(p.m, p.kh, p.kw, -1).transpose(0, 3, 1, 2), b),
    "channels last",
)
_conv(
    "conv: maps in reverse order",
    lambda p, x, w, b=None: right.conv(p, x, w, b)[:, ::-1],
    "reverse(d)? order|reversed",
    params=PLAIN,
)
_conv(
    "conv: channels in reverse order",
    lambda p, x, w, b=None: right.conv(p, x, w[:, ::-1], b),
    "channels .*reverse",
)
_conv(
    "conv: channels off by one",
    lambda p, x, w, b=None: right.conv(p, x, np.roll(w, 1, 1), b),
    "channels? .*one",
)

# ----------------------------------------------------------------------------------------- order of values

_conv(
    "conv: answer laid out NHWC",
    lambda p, x, w, b=None: right.conv(p, x, w, b).transpose(0, 2, 3, 1).reshape(p.n, p.m, p.out_h, p.out_w),
    "NHWC",
)
_conv(
    "conv: images read as NHWC",
    lambda p, x, w, b=None: right.conv(p, x.reshape(p.n, p.h, p.w, p.c).transpose(0, 3, 1, 2), w, b),
    "NHWC",
)
_conv(
    "conv: rows and columns of the answer swapped",
    lambda p, x, w, b=None: right.conv(p, x, w, b).swapaxes(2, 3).reshape(p.n, p.m, p.out_h, p.out_w),
    "laid out .*(rows and columns|columns before rows|column, row)",
    "NCWH",
)
_conv(
    "conv: images in reverse order", lambda p, x, w, b=None: right.conv(p, x, w, b)[::-1], "images .*reverse"
)
_conv(
    "conv: answer upside down",
    lambda p, x, w, b=None: right.conv(p, x, w, b)[:, :, ::-1],
    "rows .*reverse",
    params=PLAIN,
)

# ------------------------------------------------------------------------------------ values as a whole

_conv("conv: sign", lambda p, x, w, b=None: -right.conv(p, x, w, b), "sign")
_conv("conv: 1 % too large", lambda p, x, w, b=None: 1.01 * right.conv(p, x, w, b), r"1\.01 times")
_conv("conv: twice as large", lambda p, x, w, b=None: 2 * right.conv(p, x, w, b), r"\b2 times")
_conv(
    "conv: a hundredth too much",
    lambda p, x, w, b=None: right.conv(p, x, w, b) + 0.01,
    r"0\.01 is added|off by .*0\.01",
)
_conv(
    "conv: divided by the products of a sum",
    lambda p, x, w, b=None: right.conv(p, x, w, b) / w[0].size,
    "factor that depends on the shape",
)
_conv("conv: always zero", lambda p, x, w, b=None: 0 * right.conv(p, x, w, b), "answers zero")
_conv(
    "conv: images never read",
    lambda p, x, w, b=None: right.conv(p, 0 * x, w, b),
    "inputs of zeros",
    "answers zero",
)
_conv("conv: magnitudes", lambda p, x, w, b=None: np.abs(right.conv(p, x, w, b)), "absolute value|magnitude")
_conv(
    "conv: summed in half precision",
    lambda p, x, w, b=None: right.act(
        p,
        right.shift(
            right.products(p, right.padded(p, x), w, np.float16), None if b is None else b.astype(np.float16)
        ).astype(np.float32),
    ),
    "half precision",
)
_conv(
    "conv: operands in half precision",
    lambda p, x, w, b=None: right.conv(
        p, x.astype(np.float16).astype(np.float32), w.astype(np.float16).astype(np.float32), b
    ),
    "operands .*(half precision|11 )",
)
_conv(
    "conv: operands in bfloat16",
    lambda p, x, w, b=None: right.conv(p, right.bfloat16(x), right.bfloat16(w), b),
    "bfloat16",
)
_conv(
    "conv: answer kept in half precision",
    lambda p, x, w, b=None: right.conv(p, x, w, b).astype(np.float16),
    "half precision",
)
_conv(
    "conv: noise of one thousandth",
    lambda p, x, w, b=None: right.conv(p, x, w, b) + 1e-3 * np.sin(1e4 * right.conv(p, x, w, b)),
)

# ---------------------------------------------------------------------------------- bias and activation

_conv("conv: bias left out", lambda p, x, w, b=None: right.conv(p, x, w), "bias is missing")
_conv("conv: bias behind the activation", _late, "bias is added after the activation")
_conv(
    "conv: bias twice",
    lambda p, x, w, b=None: right.conv(p, x, w, None if b is None else 2 * b),
    "bias is added twice",
)
_conv(
    "conv: bias subtracted",
    lambda p, x, w, b=None: right.conv(p, x, w, None if b is None else -b),
    "bias is subtracted",
)
_conv(
    "conv: first map's bias for all",
    lambda p, x, w, b=None: right.conv(p, x, w, None if b is None else b[:1].repeat(p.m)),
    "bias of map 0",
)
_conv(
    "conv: bias of the next map",
    lambda p, x, w, b=None: right.conv(p, x, w, None if b is None else np.roll(b, -1)),
    "bias of the next map",
)
_conv(
    "conv: activation left out",
    lambda p, x, w, b=None: right.conv(replace(p, activation=None), x, w, b),
    "activation is missing",
)
_conv(
    "conv: relu whatever was asked for",
    lambda p, x, w, b=None: right.conv(replace(p, activation="relu"), x, w, b),
    "relu",
)

# ------------------------------------------------------------------------- groups, strides and dilation

_conv(
    "conv: groups ignored",
    lambda p, x, w, b=None: right.conv(p, np.tile(x[:, : p.c // p.group], (1, p.group, 1, 1)), w, b),
    "first group",
)
_conv(
    "conv: groups in reverse order",
    lambda p, x, w, b=None: right.conv(
        p, x.reshape(p.n, p.group, -1, p.h, p.w)[:, ::-1].reshape(x.shape), w, b
    ),
    "groups .*reverse",
    "wrong only where there are groups",
)
_conv(
    "conv: strides swapped",
    lambda p, x, w, b=None: right.as_if(p, x, w, b, stride_h=p.stride_w, stride_w=p.stride_h),
    "strides .*swapped",
)
_conv(
    "conv: stride ignored",
    lambda p, x, w, b=None: right.as_if(p, x, w, b, stride_h=1, stride_w=1),
    "stride is ignored",
)
_conv(
    "conv: height's stride for both",
    lambda p, x, w, b=None: right.as_if(p, x, w, b, stride_w=p.stride_h),
    "stride along width is taken",
)
_conv(
    "conv: dilation ignored",
    lambda p, x, w, b=None: right.as_if(p, x, w, b, dilation_h=1, dilation_w=1),
    "dilation is ignored",
)
_conv(
    "conv: dilations swapped",
    lambda p, x, w, b=None: right.as_if(p, x, w, b, dilation_h=p.dilation_w, dilation_w=p.dilation_h),
    "dilations .*swapped",
)
_conv(
    "conv: dilation along height alone",
    lambda p, x, w, b=None: right.as_if(p, x, w, b, dilation_w=1),
    "dilation along width is ignored",
)
_conv(
    "conv: kernels that are not square read as if they were",
    lambda p, x, w, b=None: (
        right.conv(p, x, w.reshape(*w.shape[:2], p.kw, p.kh).swapaxes(2, 3), b)
        if p.kh != p.kw
        else right.conv(p, x, w, b)
    ),
    "kernel's height and width (differ|are taken for each other)",
)


# ----------------------------------------------------------------------------- images and parts of the answer


def _part(name: str, change: Any, *says: str, params: Conv | None = None) -> None:
    """A right answer of which a part is changed in place."""

    def wrong(p: Conv, x: Array, w: Array, b: Array | None = None) -> Array:
        y = right.conv(p, x, w, b)
        change(p, y)
        return y

    _conv(name, wrong, *says, params=params)


def _set(*place: Any, to: float = 0) -> Any:
    return lambda p, y: y.__setitem__(place, to)


def _every(p: Conv, y: Array) -> None:
    y[:] = y[:1]


def _stretch(p: Conv, y: Array) -> None:
    y[..., p.out_w // 4 * 4 :] = 0.5


_part("conv: last image zeros", lambda p, y: y[-1:].fill(0) if p.n > 1 else None, "zeros for the last image")
_part(
    "conv: all images but the first zeros",
    _set(slice(1, None)),
    "right for the first image, zeros for the others",
)
_part("conv: all images get the first one's answer", _every, "first image's answer")
_part("conv: first image zeros", lambda p, y: y[:1].fill(0) if p.n > 1 else None, "zeros for the first image")
_part("conv: last column zeros", _set(Ellipsis, -1), "last column", params=PLAIN)
_part("conv: last row zeros", _set(Ellipsis, -1, slice(None)), "last row", params=PLAIN)
_part("conv: last map zeros", _set(slice(None), -1), "last (map|channel)")
_part("conv: columns beyond the last whole four", _stretch, "columns beyond the last whole 4")
_part("conv: first element", _set(0, 0, 0, 0, to=9), "first (element|image|map|channel|row|column)")
_part("conv: an element in the middle", lambda p, y: y.reshape(-1).__setitem__(y.size // 2, 7))
_part("conv: every other element", lambda p, y: y.reshape(-1)[::2].fill(0.3))


def _image_stride(p: Conv, x: Array, w: Array, b: Array | None = None) -> Array:
    """Images are taken to lie one plane apart."""
    flat, size = x.reshape(-1), p.c * p.h * p.w
    wrong = np.stack([flat[i * p.h * p.w : i * p.h * p.w + size] for i in range(p.n)])
    return right.conv(p, wrong.reshape(x.shape), w, b)


_conv("conv: images one plane apart", _image_stride, "batch", "first image", "image")

# ------------------------------------------------------------------------------------ how it is written


@planted("conv", "conv: added to what the output held", "adds to what the output")
def _adds(p: Conv, y: Array, x: Array, w: Array, b: Array | None = None) -> None:
    y += right.conv(p, x, w, b)


@planted(
    "conv", "conv: maximum with what the output held", "what the output or the workspace held|what output or"
)
def _keeps(p: Conv, y: Array, x: Array, w: Array, b: Array | None = None) -> None:
    np.maximum(y, right.conv(p, x, w, b), out=y)


@planted("conv", "conv: last column never written", "never writes")
def _unwritten(p: Conv, y: Array, x: Array, w: Array, b: Array | None = None) -> None:
    y[..., :-1] = right.conv(p, x, w, b)[..., :-1]


@planted("conv", "conv: last image never written", "never writes")
def _fewer(p: Conv, y: Array, x: Array, w: Array, b: Array | None = None) -> None:
    y[: max(1, p.n - 1)] = right.conv(p, x, w, b)[: max(1, p.n - 1)]


@planted("conv", "conv: one NaN", r"NaN at element \(0, 1, 0, 0\)")
def _nan(p: Conv, y: Array, x: Array, w: Array, b: Array | None = None) -> None:
    y[...] = right.conv(p, x, w, b)
    y[0, 1, 0, 0] = np.nan


@planted("conv", "conv: writes into its input", "only to be read")
def _writes(p: Conv, y: Array, x: Array, w: Array, b: Array | None = None) -> None:
    y[...] = right.conv(p, x, w, b)
    x[0, 0, 0, 0] = 5


@planted("conv", "conv: writes behind the output", "behind the end of the output")
def _strays(p: Conv, y: Array, x: Array, w: Array, b: Array | None = None) -> None:
    y[...] = right.conv(p, x, w, b)
    np.lib.stride_tricks.as_strided(y.reshape(-1), (y.size + 1,), (4,))[-1] = 1


_kept: dict[tuple[int, tuple[int, ...]], Array] = {}


@planted("conv", "conv: the first answer for ever", "pass before")
def _stale(p: Conv, y: Array, x: Array, w: Array, b: Array | None = None) -> None:
    key = (y.ctypes.data, y.shape)
    if key not in _kept:
        _kept.clear()
        _kept[key] = right.conv(p, x, w, b)
    y[...] = _kept[key]


_random = np.random.default_rng(3)


@planted("conv", "conv: chance decides", "repeated runs")
def _race(p: Conv, y: Array, x: Array, w: Array, b: Array | None = None) -> None:
    y[...] = right.conv(p, x, w, b) * (_random.random(y.shape) < 0.9)
