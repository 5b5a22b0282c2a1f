"""Mistakes of pools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from bench.judge.mistakes.values import activated, other_activations
from bench.judge.mistakes.windows import places, seen, taken_otherwise
from kernels.ops.pool import Pool


def mistakes(p: Pool, x: np.ndarray) -> Iterator[Mistake]:
    made = partial(pooled, p, x)
    if p.kind == "max":
        yield "kind", "the average is taken, not the maximum", partial(pooled, replace(p, kind="average"), x)
        yield "kind", "the minimum is taken, not the maximum", partial(_least, p, x)
        words = "the padding counts as zeros, which may win the maximum"
        yield "pad", words, partial(made, fill=0.0)
        yield "kind", "the maximum begins at 0, so that negative values are lost", partial(made, least=0.0)
    else:
        yield "kind", "the maximum is taken, not the average", partial(pooled, replace(p, kind="max"), x)
        yield "scale", "the sum is not divided", partial(made, divisor="one")
        if p.count_include_pad:
            other = replace(p, count_include_pad=False)
            yield "pad", "the padding is not counted in the average", partial(pooled, other, x)
        else:
            other = replace(p, count_include_pad=True)
            yield "pad", "the padding is counted in the average", partial(pooled, other, x)
        words = "the average is always divided by the window's whole size"
        yield "pad", words, partial(made, divisor="whole")
        if p.activation:
            early = partial(pooled, replace(p, activation=None), activated(x, p.activation))
            yield "activation", "the activation is applied before the average", early
    yield from other_activations(p.activation, partial(pooled, replace(p, activation=None), x))
    for fault, words, other in taken_otherwise(p):
        yield fault, words, partial(pooled, other, x)
    for beyond, words in (
        ("edge", "the padding repeats the edge"),
        ("memory", "padding at the sides reads the neighbouring row"),
    ):
        yield "pad", words, partial(made, beyond=beyond)
    for words, place in (
        ("the last row of the window is left out", (-1, slice(None))),
        ("the last column of the window is left out", (slice(None), -1)),
        ("the first row of the window is left out", (0, slice(None))),
        ("the first column of the window is left out", (slice(None), 0)),
        ("the last tap of the window is left out", (-1, -1)),
        ("the first tap of the window is left out", (0, 0)),
    ):
        taken = np.ones((p.kh, p.kw), bool)
        taken[place] = False
        if taken.any():
            yield "left_out", words, partial(made, taken=taken)
    turned = x.reshape(p.n, p.h, p.w, p.c).transpose(0, 3, 1, 2)
    yield "layout", "the images are read as if their channels came last (NHWC)", partial(pooled, p, turned)


def pooled(
    p: Pool,
    x: np.ndarray,
    *,
    fill: float | None = None,
    least: float = -np.inf,
    divisor: str = "",
    beyond: str = "",
    taken: np.ndarray | None = None,
) -> np.ndarray:
    """What `p` says, (n, c, out_h, out_w). fill: what the padding holds (None: nothing that counts); least:
    where a maximum begins; divisor: "one" or "whole" (the window's size); beyond: see windows.seen; taken:
    (kh, kw), the taps that are read."""
    largest = p.kind == "max"
    nothing = -np.inf if largest else 0.0
    windows = seen(p, x, beyond, nothing if fill is None else fill)
    taps = np.ones((p.kh, p.kw), bool) if taken is None else taken
    windows = np.where(taps[:, None, :], windows, nothing)
    if largest:
        return activated(np.maximum(windows.max(axis=(3, 5)), least), p.activation)
    total = windows.sum(axis=(3, 5))
    if divisor != "one":
        total /= p.kh * p.kw if divisor == "whole" else _counted(p, taps)
    return activated(total, p.activation)


def _least(p: Pool, x: np.ndarray) -> np.ndarray:
    return activated(-pooled(replace(p, activation=None), -x), p.activation)


def _counted(p: Pool, taps: np.ndarray) -> np.ndarray:
    rows, columns = places(p)
    pads = (p.pad_top, p.pad_left, p.pad_bottom, p.pad_right) if p.count_include_pad else (0, 0, 0, 0)
    high = (rows >= -pads[0]) & (rows < p.h + pads[2])
    wide = (columns >= -pads[1]) & (columns < p.w + pads[3])
    counted = np.einsum("akbl,kl->ab", high[:, :, None, None] & wide, taps.astype(float))
    return np.asarray(np.maximum(counted, 1))
