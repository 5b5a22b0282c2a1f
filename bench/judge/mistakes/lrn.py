"""Mistakes of local response normalisation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from kernels.ops.lrn import Lrn


def mistakes(p: Lrn, x: np.ndarray) -> Iterator[Mistake]:
    made = partial(normalised, p, x)
    yield "scale", "the normalisation is missing", lambda: x
    if p.size > 1:
        raised = replace(p, alpha=p.alpha * p.size)
        yield "scale", "alpha is not divided by the size", partial(normalised, raised, x)
    yield "bias", "the bias is missing", partial(normalised, replace(p, bias=0.0), x)
    if p.bias != 1:
        yield "bias", "the bias is taken to be 1", partial(normalised, replace(p, bias=1.0), x)
    for beta, words in (
        (1.0, "beta is ignored"),
        (0.5, "beta is taken to be 0.5"),
        (0.75, "beta is taken to be 0.75"),
    ):
        if p.beta != beta:
            yield "scale", words, partial(normalised, replace(p, beta=beta), x)
    yield (
        "sign",
        "it multiplies by the sum's power instead of dividing",
        partial(normalised, replace(p, beta=-p.beta), x),
    )
    yield "kind", "the values of the sum are not squared", partial(made, squares=np.abs(x))
    yield "kind", "the values of the sum are not squared and keep their sign", partial(made, squares=x)
    if p.size > 1:
        before = (p.size - 1) // 2
        yield (
            "left_out",
            "the last channel of each sum is left out",
            partial(made, size=p.size - 1, before=before),
        )
        yield (
            "left_out",
            "the first channel of each sum is left out",
            partial(made, size=p.size - 1, before=before - 1),
        )
        words = "each sum is of the channels before it, none behind"
        yield "layout", words, partial(made, before=p.size - 1)
        yield "layout", "each sum is of the channels behind it, none before", partial(made, before=0)
        if p.size % 2 == 0:
            yield "layout", "sums of even size lean the other way", partial(made, before=p.size // 2)
    yield "kind", "each sum holds its own channel alone", partial(made, size=1, before=0)
    yield "kind", "each sum is of all channels", partial(made, size=2 * p.c, before=p.c)


def normalised(
    p: Lrn,
    x: np.ndarray,
    *,
    size: int | None = None,
    before: int | None = None,
    squares: np.ndarray | None = None,
) -> np.ndarray:
    """What `p` says of x (n, c, …). size, before: how many channels a sum has, and how many of them lie
    before its own; squares: what is summed."""
    squares = x * x if squares is None else squares
    size = p.size if size is None else size
    before = (p.size - 1) // 2 if before is None else before
    total = np.zeros_like(x)
    for c in range(p.c):
        total[:, c] = squares[:, max(0, c - before) : max(0, c - before + size)].sum(axis=1)
    with np.errstate(all="ignore"):
        return np.asarray(x / (p.bias + p.alpha / p.size * total) ** p.beta)
