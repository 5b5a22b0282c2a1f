"""Mistakes of the other operators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernels.cpu.common import windows
from kernels.params import Binary, Cast, Pad, Softmax, Unary
from tests.judge import right
from tests.judge.planting import MEAN, TIMED, answers, planted

Array = np.ndarray
GEMM = TIMED["gemm"]
LINEAR = replace(GEMM, activation=None)

# --- gemm


def _gemm(name: str, wrong: Any, *says: str, params: Any = None) -> None:
    answers("gemm", name, wrong, *says, params=params)


def _turned(b: Array) -> Array:
    """Read as if it lay transposed."""
    return b.reshape(b.shape[0], b.shape[2], b.shape[1]).swapaxes(1, 2)


def _but(a: Array, p: Any, start: int, stop: int | None = None) -> Array:
    """The left matrix without some of the products of each sum."""
    a = a.copy()
    a[(slice(None), slice(start, stop)) if p.trans_a else (..., slice(start, stop))] = 0
    return a


_gemm(
    "gemm: transB ignored",
    lambda p, a, b, c=None: right.gemm(p, a, _turned(b), c),
    "transB|right matrix .*transposed",
)
_gemm(
    "gemm: transA ignored",
    lambda p, a, b, c=None: right.gemm(p, _turned(a), b, c),
    "transA|left matrix .*transposed",
    params=replace(GEMM, trans_a=True),
)
_gemm("gemm: bias left out", lambda p, a, b, c=None: right.gemm(p, a, b), "bias is missing")
_gemm(
    "gemm: bias behind the activation",
    lambda p, a, b, c=None: right.gemm(p, a, b) + (0 if c is None else p.beta * c),
    "bias is added after the activation",
)
_gemm(
    "gemm: bias subtracted",
    lambda p, a, b, c=None: right.gemm(p, a, b, None if c is None else -c),
    "bias is subtracted",
)
_gemm(
    "gemm: first bias for all",
    lambda p, a, b, c=None: right.gemm(p, a, b, None if c is None else c * 0 + c.flat[0]),
    "first .*bias|bias .*first",
)
_gemm(
    "gemm: alpha ignored",
    lambda p, a, b, c=None: right.gemm(replace(p, alpha=1), a, b, c),
    "alpha is ignored",
)
_gemm(
    "gemm: alpha also for the bias",
    lambda p, a, b, c=None: right.gemm(replace(p, beta=p.beta * p.alpha), a, b, c),
    "alpha .*bias",
)
_gemm(
    "gemm: beta ignored", lambda p, a, b, c=None: right.gemm(replace(p, beta=1), a, b, c), "beta is ignored"
)
_gemm(
    "gemm: last product left out", lambda p, a, b, c=None: right.gemm(p, _but(a, p, -1), b, c), "last product"
)
_gemm(
    "gemm: first product left out",
    lambda p, a, b, c=None: right.gemm(p, _but(a, p, 0, 1), b, c),
    "first product",
)
_gemm(
    "gemm: products beyond the last whole eight left out",
    lambda p, a, b, c=None: right.gemm(p, _but(a, p, p.k // 8 * 8), b, c),
    "beyond the last whole 8",
)
_gemm(
    "gemm: activation left out",
    lambda p, a, b, c=None: right.gemm(replace(p, activation=None), a, b, c),
    "activation is missing",
)
_gemm(
    "gemm: answer transposed",
    lambda p, a, b, c=None: right.gemm(p, a, b, c).swapaxes(1, 2).reshape(p.batch, p.m, p.n),
    "laid out .*column",
)
_gemm("gemm: 1 % too large", lambda p, a, b, c=None: 1.01 * right.gemm(p, a, b, c), r"1\.01 times")
_gemm(
    "gemm: operands in half precision",
    lambda p, a, b, c=None: right.gemm(
        p, a.astype(np.float16).astype(np.float32), b.astype(np.float16).astype(np.float32), c
    ),
    "operands .*half precision",
)
_gemm(
    "gemm: columns beyond the last whole eight zeros",
    lambda p, a, b, c=None: right.gemm(p, a, b, c) * (np.arange(p.n) < p.n // 8 * 8),
    "columns beyond the last whole 8",
    params=LINEAR,
)
_gemm(
    "gemm: last row zeros",
    lambda p, a, b, c=None: right.gemm(p, a, b, c) * (np.arange(p.m) < p.m - 1)[:, None],
    "last row",
    params=LINEAR,
)


@planted("gemm", "gemm: summed into what the output held", "adds to what the output")
def _adds(p: Any, y: Array, a: Array, b: Array, c: Array | None = None) -> None:
    y += right.gemm(p, a, b, c)


# --- pool


def _pool(name: str, wrong: Any, *says: str, params: Any = None) -> None:
    answers("pool", name, wrong, *says, params=params)


def _smallest(p: Any, x: Array) -> Array:
    return right.act(p, windows(p, right.padded(p, x, value=np.inf)).min(axis=(2, 3)))


def _over_all(p: Any, x: Array) -> Array:
    """Divided by the window's size, whatever of it lies beyond what there is."""
    return right.act(p, windows(p, right.padded(p, x)).sum(axis=(2, 3)) / (p.kh * p.kw))


_pool("pool: average for the maximum", lambda p, x: right.pool(p, x, kind="average"), "average")
_pool("pool: maximum for the average", lambda p, x: right.pool(p, x, kind="max"), "maximum", params=MEAN)
_pool("pool: minimum for the maximum", _smallest, "minimum")
_pool(
    "pool: padding counted",
    lambda p, x: right.pool(p, x, count_include_pad=True),
    "padding is counted",
    "divided by the window's whole size",
    params=MEAN,
)
_pool(
    "pool: padding not counted",
    lambda p, x: right.pool(p, x, count_include_pad=False),
    "padding is not counted",
    params=replace(MEAN, count_include_pad=True),
)
_pool("pool: divided by the window's size always", _over_all, "whole size", params=MEAN)
_pool(
    "pool: sum for the average",
    lambda p, x: right.act(p, right.windows(p, right.padded(p, x)).sum(axis=(2, 3))),
    "not divided",
    params=MEAN,
)
_pool(
    "pool: zeros may win",
    lambda p, x: right.act(p, windows(p, right.padded(p, x)).max(axis=(2, 3))),
    "zeros .*win|padding .*zeros",
)
_pool(
    "pool: maximum begins at zero",
    lambda p, x: right.act(p, np.maximum(0, right.pool(replace(p, activation=None), x))),
    "negative|begins at 0",
)
_pool(
    "pool: strides swapped",
    lambda p, x: right.pool(p, x, stride_h=p.stride_w, stride_w=p.stride_h),
    "strides .*swapped",
)
_pool("pool: stride ignored", lambda p, x: right.pool(p, x, stride_h=1, stride_w=1), "stride is ignored")
_pool(
    "pool: dilation ignored", lambda p, x: right.pool(p, x, dilation_h=1, dilation_w=1), "dilation is ignored"
)
_pool(
    "pool: last row of the window left out",
    lambda p, x: right.pool(p, x, kh=max(1, p.kh - 1)),
    "last row of the window is left out",
)
_pool(
    "pool: last tap of the window left out",
    lambda p, x: right.act(
        p,
        windows(p, right.padded(p, x, value=-np.inf))
        .reshape(p.n, p.c, p.kh * p.kw, p.out_h, p.out_w)[:, :, :-1]
        .max(axis=2),
    ),
    "last tap",
)
_pool("pool: padding ignored", lambda p, x: right.pool(p, x, pad_top=0, pad_left=0), "padding is ignored")
_pool("pool: activation left out", lambda p, x: right.pool(p, x, activation=None), "activation is missing")
_pool(
    "pool: answer laid out NHWC",
    lambda p, x: right.pool(p, x).transpose(0, 2, 3, 1).reshape(p.n, p.c, p.out_h, p.out_w),
    "NHWC",
)
_pool(
    "pool: activation before the average",
    lambda p, x: right.pool(replace(p, activation=None), right.act(p, x)),
    "activation .*before",
    params=MEAN,
)

# --- lrn and softmax


def _lrn(name: str, wrong: Any, *says: str) -> None:
    answers("lrn", name, wrong, *says)


_lrn(
    "lrn: alpha not divided",
    lambda p, x: right.lrn(x, p.size, p.alpha, p.beta, p.bias),
    "alpha is not divided",
)
_lrn(
    "lrn: bias left out",
    lambda p, x: right.lrn(x, p.size, p.alpha / p.size, p.beta, 0),
    "bias is missing|bias .*0",
)
_lrn(
    "lrn: beta ignored",
    lambda p, x: right.lrn(x, p.size, p.alpha / p.size, 1, p.bias),
    "beta is (ignored|taken)",
)
_lrn(
    "lrn: sum not squared",
    lambda p, x: right.lrn(x, p.size, p.alpha / p.size, p.beta, p.bias, squares=np.abs(x)),
    "square",
)
_lrn(
    "lrn: sum too narrow",
    lambda p, x: right.lrn(x, max(1, p.size - 1), p.alpha / p.size, p.beta, p.bias, before=(p.size - 1) // 2),
    "last channel",
)
_lrn(
    "lrn: channels to one side",
    lambda p, x: right.lrn(x, p.size, p.alpha / p.size, p.beta, p.bias, before=p.size - 1),
    "channels .*before|side",
)
_lrn(
    "lrn: even sums lean the other way",
    lambda p, x: right.lrn(x, p.size, p.alpha / p.size, p.beta, p.bias, before=p.size // 2),
    "lean|even",
)
_lrn("lrn: multiplied", lambda p, x: right.lrn(x, p.size, p.alpha / p.size, -p.beta, p.bias), "multipl")
_lrn("lrn: copied", lambda p, x: x, "unchanged")


def _soft(name: str, wrong: Any, *says: str, params: Any = None) -> None:
    answers("softmax", name, wrong, *says, params=params)


def _naive(p: Softmax, x: Array) -> Array:
    with np.errstate(all="ignore"):
        powers = np.exp(x)
        y = powers / powers.sum(axis=1, keepdims=True)
        return np.log(y) if p.log else y


def _short(p: Softmax, x: Array) -> Array:
    moved = x - x.max(axis=1, keepdims=True)
    total = np.exp(moved)[:, : max(1, p.axis - 1)].sum(axis=1, keepdims=True)
    return moved - np.log(total) if p.log else np.exp(moved) / total


_soft("softmax: over the inner axis", lambda p, x: right.softmax(x, 2, p.log), "axis")
_soft("softmax: over the outer axis", lambda p, x: right.softmax(x, 0, p.log), "axis")
_soft(
    "softmax: over all",
    lambda p, x: right.softmax(x.reshape(1, -1), 1, p.log).reshape(x.shape),
    "axis|over all",
)
_soft(
    "softmax: not normalised",
    lambda p, x: x - x.max(axis=1, keepdims=True) if p.log else np.exp(x - x.max(axis=1, keepdims=True)),
    "not divided",
)
_soft(
    "softmax: logarithm left out",
    lambda p, x: right.softmax(x),
    "logarithm",
    params=Softmax(3, 10, 4, log=True),
)
_soft("softmax: logarithm too many", lambda p, x: right.softmax(x, 1, True), "logarithm")
_soft("softmax: maximum not subtracted", _naive, "NaN|infinity")
_soft("softmax: last element left out of the sum", _short, "last element is left out")

# --- element by element

answers("unary", "unary: sigmoid for tanh", lambda p, x: right.UNARY["sigmoid"](x), "sigmoid")
answers("unary", "unary: relu that lets all through", lambda p, x: x, "unchanged", params=Unary("relu", 100))
answers(
    "unary",
    "unary: relu of the other sign",
    lambda p, x: np.minimum(x, 0),
    "minimum|positive",
    params=Unary("relu", 100),
)
answers("unary", "unary: tanh of twice", lambda p, x: np.tanh(2 * x), "2 ")
answers("unary", "unary: tanh by its series", lambda p, x: x - x**3 / 3)
answers(
    "unary",
    "unary: sigmoid that overflows",
    lambda p, x: np.exp(x) / (1 + np.exp(x)),
    "NaN",
    params=Unary("sigmoid", 100),
)
answers(
    "unary",
    "unary: elements beyond the last whole four zeros",
    lambda p, x: np.tanh(x) * (np.arange(p.size) < p.size // 4 * 4),
    "elements beyond the last whole 4",
)
answers("unary", "unary: in half precision", lambda p, x: np.tanh(x).astype(np.float16), "half precision")
answers("binary", "binary: operands swapped", lambda p, a, b: right.act(p, b - a), "operands .*swapped|sign")
answers("binary", "binary: sum for the difference", lambda p, a, b: right.act(p, a + b), r"\badd")
answers(
    "binary",
    "binary: product for the quotient",
    lambda p, a, b: right.act(p, a * b),
    r"\bmul",
    params=Binary("div", (3, 4, 5), (20, 5, 1), (0, 1, 0)),
)
answers(
    "binary",
    "binary: activation left out",
    lambda p, a, b: a - b,
    "activation is missing",
    params=replace(TIMED["binary"], activation="relu"),
)
answers(
    "binary",
    "binary: second operand not repeated",
    lambda p, a, b: right.act(p, a - np.resize(b.reshape(-1), p.shape)),
    "broadcast|second operand",
)
answers(
    "binary",
    "binary: first element of the second operand for all",
    lambda p, a, b: right.act(p, a - b.reshape(-1)[0]),
    "first element",
)

# --- moved and converted

answers(
    "transpose",
    "transpose: inverse",
    lambda p, x: x.transpose(np.argsort(p.perm)).reshape(np.array(p.shape)[list(p.perm)]),
    "inverse|the other way",
)
answers(
    "transpose", "transpose: copied", lambda p, x: x.reshape(np.array(p.shape)[list(p.perm)]), "unchanged"
)
answers(
    "transpose",
    "transpose: axes reversed",
    lambda p, x: x.T.reshape(np.array(p.shape)[list(p.perm)]),
    "reverse",
)
answers("transpose", "transpose: negated", lambda p, x: -x.transpose(p.perm), "sign")
answers(
    "pad",
    "pad: zeros for the value",
    lambda p, x: right.pads(p, x, constant_values=0),
    "value is ignored|zeros",
)
answers("pad", "pad: beginning and end swapped", lambda p, x: right.pads(p, x, p.end, p.begin), "swapped")
answers("pad", "pad: edge for the constant", lambda p, x: right.pads(p, x, mode="edge"), "edge")
answers(
    "pad",
    "pad: reflected for the edge",
    lambda p, x: right.pads(p, x, mode="reflect"),
    "reflect",
    params=Pad((5, 7), (0, 2), (1, 1), mode="edge"),
)
answers(
    "pad",
    "pad: edge for the reflection",
    lambda p, x: right.pads(p, x, mode="edge"),
    "edge",
    params=Pad((5, 7), (0, 2), (1, 1), mode="reflect"),
)
answers(
    "pad",
    "pad: reflection with the edge twice",
    lambda p, x: right.pads(p, x, mode="symmetric"),
    "twice|symmetric",
    params=Pad((5, 7), (0, 2), (1, 1), mode="reflect"),
)
answers("cast", "cast: rounded", lambda p, x: np.rint(x), "round")
answers("cast", "cast: rounded down", lambda p, x: np.floor(x), "down|floor")
answers(
    "cast",
    "cast: Booleans of what is positive",
    lambda p, x: x > 0,
    "positive",
    params=Cast(100, "float32", "bool"),
)

# --- two operators in one


def _both(name: str, wrong: Any, *says: str) -> None:
    answers("conv_pool", name, wrong, *says)


_both(
    "conv_pool: bias left out",
    lambda p, x, w, b=None: right.pool(p.pool, right.conv(p.conv, x, w)),
    "bias is missing",
)
_both(
    "conv_pool: kernel flipped",
    lambda p, x, w, b=None: right.pool(p.pool, right.conv(p.conv, x, w[..., ::-1, ::-1], b)),
    "flipped",
)
_both(
    "conv_pool: pool's activation left out",
    lambda p, x, w, b=None: right.pool(p.pool, right.conv(p.conv, x, w, b), activation=None),
    "in the pool the activation is missing",
)
_both(
    "conv_pool: convolution's activation left out",
    lambda p, x, w, b=None: right.pool(p.pool, right.conv(replace(p.conv, activation=None), x, w, b)),
    "activation .*missing",
)
_both(
    "conv_pool: average for the maximum",
    lambda p, x, w, b=None: right.pool(p.pool, right.conv(p.conv, x, w, b), kind="average"),
    "average",
)
_both(
    "conv_pool: pool's strides swapped",
    lambda p, x, w, b=None: right.pool(
        p.pool, right.conv(p.conv, x, w, b), stride_h=p.pool.stride_w, stride_w=p.pool.stride_h
    ),
    "strides .*swapped",
)
_both(
    "conv_pool: last channel left out",
    lambda p, x, w, b=None: right.pool(
        p.pool, right.conv(p.conv, x, w * (np.arange(w.shape[1]) < w.shape[1] - 1)[:, None, None], b)
    ),
    "last channel",
)


def _normal(p: Any, x: Array, **other: Any) -> Array:
    fields = {"size": p.size, "alpha": p.alpha / p.size, "beta": p.beta, "bias": p.bias} | other
    return right.lrn(x, **fields)


answers(
    "lrn_pool",
    "lrn_pool: alpha not divided",
    lambda p, x: right.pool(p.pool, _normal(p, x, alpha=p.alpha)),
    "alpha is not divided",
)
answers(
    "lrn_pool",
    "lrn_pool: normalisation left out",
    lambda p, x: right.pool(p.pool, x),
    "normalisation is missing",
)
answers(
    "lrn_pool",
    "lrn_pool: padding ignored",
    lambda p, x: right.pool(p.pool, _normal(p, x), pad_top=0, pad_left=0),
    "padding is ignored",
)
