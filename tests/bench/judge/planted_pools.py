"""Mistakes of pools, alone and behind another operator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernels.cpu.common import windows
from tests.bench.judge import right
from tests.bench.judge.planting import MEAN, answers

Array = np.ndarray


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
