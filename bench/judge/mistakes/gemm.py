"""Mistakes of matrix products."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from bench.judge.mistakes.values import ROUNDINGS, activated, other_activations
from kernels.ops.gemm import Gemm


def mistakes(p: Gemm, a: np.ndarray, b: np.ndarray, bias: np.ndarray | None = None) -> Iterator[Mistake]:
    def made(
        q: Gemm = p, a: np.ndarray = a, b: np.ndarray = b, shift: np.ndarray | None = bias
    ) -> np.ndarray:
        return product(q, a, b, shift)

    yield "zeros_only", "answers as for inputs of zeros, whatever it is given", partial(made, a=0 * a)
    if bias is not None:
        yield "bias", "the bias is missing", partial(made, shift=None)
        if p.activation:
            late = p.beta * bias
            yield "bias", "the bias is added after the activation", lambda: made(shift=None) + late
        if p.beta != 1:
            yield "bias", "beta is ignored", partial(made, replace(p, beta=1.0))
        if p.alpha != 1:
            both = replace(p, beta=p.alpha * p.beta)
            yield "bias", "alpha is applied to the bias as well", partial(made, both)
        yield "bias", "the bias is added twice", partial(made, shift=2 * bias)
        yield "bias", "the bias is subtracted", partial(made, shift=-bias)
        first = np.full_like(bias, bias.flat[0])
        yield "bias", "the first element of the bias is added everywhere", partial(made, shift=first)
        if p.m == p.n and 1 in bias.shape:
            yield "bias", "the bias is added along the other axis", partial(made, shift=bias.swapaxes(-1, -2))
    if p.alpha != 1:
        yield "scale", "alpha is ignored", partial(made, replace(p, alpha=1.0))
    yield from other_activations(p.activation, partial(made, replace(p, activation=None)))
    yield "layout", f"the left matrix is read {_as(p.trans_a)} (transA)", partial(made, a=_turned(a))
    yield "layout", f"the right matrix is read {_as(p.trans_b)} (transB)", partial(made, b=_turned(b))
    yield "layout", "both matrices are read the other way about", partial(made, a=_turned(a), b=_turned(b))
    yield "left_out", "the last product of each sum is left out", partial(made, a=_cut(p, a, p.k - 1, p.k))
    yield "left_out", "the first product of each sum is left out", partial(made, a=_cut(p, a, 0, 1))
    for whole in (2, 4, 8, 16, 32, 64):
        words = f"the products of each sum beyond the last whole {whole} are left out"
        yield "left_out", words, partial(made, a=_cut(p, a, p.k // whole * whole, p.k))
    for words, rounded in ROUNDINGS:
        yield "half_precision", words, partial(made, a=rounded(a), b=rounded(b))
    if p.stride_a:
        yield (
            "batch_one_only",
            "every product reads the first left matrix",
            partial(made, a=a[:1].repeat(p.batch, 0)),
        )
    if p.stride_b:
        yield (
            "batch_one_only",
            "every product reads the first right matrix",
            partial(made, b=b[:1].repeat(p.batch, 0)),
        )


def _as(transposed: bool) -> str:
    return "as if it did not lie transposed" if transposed else "as if it lay transposed"


def _turned(a: np.ndarray) -> np.ndarray:
    """The same bytes, read along the other axis."""
    return a.reshape(a.shape[0], a.shape[2], a.shape[1]).swapaxes(1, 2)


def _cut(p: Gemm, a: np.ndarray, start: int, stop: int) -> np.ndarray:
    a = a.copy()
    a[(slice(None), slice(start, stop)) if p.trans_a else (..., slice(start, stop))] = 0
    return a


def product(p: Gemm, a: np.ndarray, b: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """(batch, m, n)"""
    y = p.alpha * (a.swapaxes(1, 2) if p.trans_a else a) @ (b.swapaxes(1, 2) if p.trans_b else b)
    return activated(y if bias is None else y + p.beta * bias, p.activation)
