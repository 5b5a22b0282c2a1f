"""Mistakes of normalisation row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from kernels.ops.normalize import GIVES, Normalize

Array = np.ndarray


def mistakes(
    p: Normalize, x: Array, scale: Array | None = None, bias: Array | None = None
) -> Iterator[Mistake]:
    def made(
        q: Normalize = p, scale: Array | None = scale, bias: Array | None = bias, **how: int
    ) -> Callable[[], Array]:
        return partial(normalised, q, x, scale, bias, **how)

    if scale is not None and bias is not None:
        yield "scale", "the scale is missing", made(scale=np.ones_like(scale))
        yield "bias", "the bias is missing", made(bias=np.zeros_like(bias))
        yield "layout", "scale and bias are swapped", made(scale=bias, bias=scale)
        yield (
            "layout",
            "the first channel's scale and bias serve all",
            made(scale=np.full_like(scale, scale[0]), bias=np.full_like(bias, bias[0])),
        )
    if p.centred:
        yield "kind", "the mean is not subtracted", made(replace(p, centred=False))
    else:
        yield "kind", "the mean is subtracted, which nobody asked for", made(replace(p, centred=True))
    if p.gives != "mean":
        yield "scale", "epsilon is ignored", made(replace(p, epsilon=0.0))
        if p.length > 1:
            yield "scale", "the variance is divided by one less than the length", made(less=1)
        yield "scale", "the variance is not divided by the length", made(less=p.length - 1)
    for other in GIVES:
        if other != p.gives and (other != "all") == (p.gives != "all"):
            yield "kind", f"it is the {other} that is given", made(replace(p, gives=other))
    if p.length > 1:
        yield "left_out", "the last element is left out of the sums", made(seen=p.length - 1)
    for whole in (2, 4, 8, 16, 32):
        if p.length % whole and (kept := p.length // whole * whole):
            words = f"the elements beyond the last whole {whole} are left out of the sums"
            yield "left_out", words, made(seen=kept)


def normalised(
    p: Normalize, x: Array, scale: Array | None, bias: Array | None, less: int = 0, seen: int | None = None
) -> Array:
    """What `p` says of x. less: what is taken off the count that squares are divided by; seen: elements of a
    row that the sums see."""
    some = x[:, :seen]
    with np.errstate(all="ignore"):
        mean = some.sum(axis=1, keepdims=True) / p.length if p.centred else np.zeros((len(x), 1))
        squares = ((some - mean) ** 2).sum(axis=1, keepdims=True)
        factor = 1 / np.sqrt(squares / (p.length - less) + p.epsilon)
        if p.gives != "all":
            return np.asarray(mean if p.gives == "mean" else factor)
        y = (x - mean) * factor
        if scale is None or bias is None:
            return np.asarray(y)
        column = (1, p.groups, p.length // p.inner, 1)
        parts = y.reshape(-1, *column[1:3], p.inner)
        return np.asarray(parts * scale.reshape(column) + bias.reshape(column)).reshape(x.shape)
