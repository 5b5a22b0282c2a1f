"""Mistakes of matrix products."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.bench.judge import right
from tests.bench.judge.planting import TIMED, answers, planted

Array = np.ndarray
GEMM = TIMED["gemm"]
LINEAR = replace(GEMM, activation=None)


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
