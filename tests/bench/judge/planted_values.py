"""Mistakes of normalisation, of single values, and of what is moved or converted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernels.ops.binary import Binary
from kernels.ops.cast import Cast
from kernels.ops.pad import Pad
from kernels.ops.resize import Resize
from kernels.ops.softmax import Softmax
from kernels.ops.unary import Unary
from tests.bench.judge import right
from tests.bench.judge.planting import TIMED, answers

Array = np.ndarray


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
_soft("softmax: maximum not subtracted", _naive, "is not subtracted")
_soft(
    "softmax: maximum not subtracted, and a logarithm",
    lambda p, x: x - np.log(np.exp(x).sum(axis=1, keepdims=True)) if p.log else _naive(p, x),
    "is not subtracted",
    params=Softmax(3, 10, 4, log=True),
)
_soft("softmax: last element left out of the sum", _short, "last element is left out")

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


def _resize(name: str, says: str, params: Resize | None = None, **changed: Any) -> None:
    answers(
        "resize",
        f"resize: {name}",
        lambda p, x: right.resize(replace(p, **changed), x),
        says,
        params=params,
    )


_NEAREST = replace(TIMED["resize"], mode="nearest", coordinates="asymmetric")
_resize("edges for centres", "asymmetric", coordinates="asymmetric")
_resize("corners aligned", "align corners", coordinates="align_corners")
_resize("nearest for linear", "as nearest", mode="nearest")
_resize("the other half", "round prefer ceil|by ceil", _NEAREST, rounding="ceil")
answers("resize", "resize: axes swapped", lambda p, x: right.resize(p, x.swapaxes(1, 2).reshape(x.shape)))


def _transposed(name: str, says: str, **changed: Any) -> None:
    answers(
        "conv_transpose",
        f"conv_transpose: {name}",
        lambda p, x, w, b=None: right.conv_transpose(replace(p, **changed), x, w, b),
        says,
    )


_transposed("padding ignored", "padding is ignored", pad_top=0, pad_left=0)
_transposed("stride one", "stride is ignored", stride_h=1, stride_w=1)
answers(
    "conv_transpose",
    "conv_transpose: no bias",
    lambda p, x, w, b=None: right.conv_transpose(p, x, w, None),
    "bias is missing",
)
answers(
    "conv_transpose",
    "conv_transpose: a convolution's window",
    lambda p, x, w, b=None: right.conv_transpose(p, x, w[..., ::-1, ::-1], b),
    "flipped",
)
answers(
    "conv_transpose",
    "conv_transpose: maps before channels",
    lambda p, x, w, b=None: right.conv_transpose(
        p, x, w.reshape(p.m // p.group, p.c, p.kh, p.kw).swapaxes(0, 1), b
    ),
    "maps and channels",
)


def _volume(name: str, says: str, wrong: Any) -> None:
    answers("conv3d", f"conv3d: {name}", wrong, says)


_volume(
    "padding ignored",
    "padding is ignored",
    lambda p, x, w, b=None: right.conv3d(replace(p, pad=(0, 0, 0)), x, w, b),
)
_volume(
    "stride one",
    "stride is ignored",
    lambda p, x, w, b=None: right.conv3d(replace(p, stride=(1, 1, 1)), x, w, b),
)
_volume("no bias", "bias is missing", lambda p, x, w, b=None: right.conv3d(p, x, w, None))
_volume(
    "kernel flipped",
    "flipped",
    lambda p, x, w, b=None: right.conv3d(p, x, w[..., ::-1, ::-1, ::-1], b),
)


answers(
    "pool_index",
    "pool_index: within each image",
    lambda p, x: right.pool_index(p, x) % (p.pool.h * p.pool.w),
    "within each image",
)
answers(
    "pool_index",
    "pool_index: column by column",
    lambda p, x: right.pool_index(replace(p, by_columns=not p.by_columns), x),
    "the other way round",
)
answers("pool_index", "pool_index: of the minimum", lambda p, x: right.pool_index(p, -x), "minimum's")
answers("pool_index", "pool_index: one further", lambda p, x: right.pool_index(p, x) + 1, "1 is added")
