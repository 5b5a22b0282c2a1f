"""Which mistake explains a wrong answer: what a convolution with that mistake would give is computed, and
compared.

All of it in float64, on the shapes of bench.judge.suite alone: a mistake explains an answer where nearly
every element agrees with it and the right answer does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bench.accuracy import BOUNDS
from bench.judge.trial import Failure
from kernels.params import Conv

MOST_OUTPUTS = 1 << 20  # of an answer that is looked into
EXPLAINED = 0.98  # of the elements
# Relative errors that sums or products of 11-bit numbers leave (fp16 has 2^-11, tf32 too), many times
# float32's.
HALF = (3e-5, 3e-2)

Explanation = tuple[str, str]


def explain(failure: Failure, precision: str) -> Explanation | None:
    """(fault, words) of the first mistake that gives just this answer, or None."""
    p = failure.sample.params
    if not isinstance(p, Conv) or failure.sample.expected.size > MOST_OUTPUTS:
        return None
    got = failure.got[: p.n].astype(np.float64)
    expected = failure.sample.expected
    x, weight = (array.astype(np.float64) for array in failure.sample.inputs[:2])
    bias = failure.sample.inputs[2].astype(np.float64) if p.bias else None
    near = 30 * BOUNDS[precision] * (float(np.abs(expected).max()) or 1.0)
    for fault, words, answer in _mistakes(p, x, weight, bias):
        with np.errstate(all="ignore"):
            agrees = np.abs(got - answer) <= near
            told = ~(np.abs(answer - expected) <= near)
        if agrees.mean() >= EXPLAINED and told.any() and agrees[told].mean() >= EXPLAINED:
            return fault, words
    return None


def general(failure: Failure, precision: str) -> Explanation | None:
    """Patterns of the error alone, for any operator: half precision."""
    stats = failure.finding.error
    if stats is None or precision in ("fp16", "tf32") or not HALF[0] <= stats.rel_l2 <= HALF[1]:
        return None
    got = failure.got[: failure.sample.expected.shape[0]].astype(np.float64)
    expected = failure.sample.expected.reshape(got.shape)
    difference = np.abs(got - expected)
    rms = float(np.sqrt(np.square(difference).mean()))
    spread = float((difference > 0.03 * rms).mean())
    if spread > 0.7 and float(difference.max()) < 15 * rms:
        words = (
            f"a sum or a product in half precision: every element is off a little, {stats.rel_l2:.1e} "
            "in all, where float32 leaves about 1e-7"
        )
        return "half_precision", words
    return None


def _mistakes(
    p: Conv, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None
) -> Iterator[tuple[str, str, np.ndarray]]:
    """(fault, words, answer) of the mistakes that are made."""

    def made(q: Conv = p, w: np.ndarray = weight, b: np.ndarray | None = bias, **how: bool) -> np.ndarray:
        return convolution(q, x, w, b, **how)

    nothing = convolution(p, 0 * x, weight, bias)
    yield "zeros_only", "answers as for inputs of zeros, whatever it is given", nothing
    yield "zeros_only", "answers zero, whatever it is given", np.zeros_like(nothing)
    if bias is not None:
        yield "bias", "the bias is missing", made(b=None)
        yield "bias", "the bias is added after the activation", _late_bias(p, x, weight, bias)
        yield "bias", "the bias is added twice", made(b=2 * bias)
        yield "bias", "the bias is subtracted", made(b=-bias)
        yield "bias", "the bias of map 0 is added to every map", made(b=np.full_like(bias, bias[0]))
    if p.activation:
        plain = replace(p, activation=None)
        yield "activation", f"the activation {p.activation} is missing", made(plain)
    if p.group > 1:
        yield "group", "groups are ignored: all maps read the first group's channels", made(first_group=True)
        yield "group", "groups are mixed up: neighbouring maps take them in turn", made(interleaved=True)
    if p.stride_h != p.stride_w:
        swapped = replace(p, stride_h=p.stride_w, stride_w=p.stride_h)
        yield "stride", "the strides along height and width are swapped", made(swapped)
        for axis, other in (("height", p.stride_w), ("width", p.stride_h)):
            both = replace(p, stride_h=other, stride_w=other)
            yield "stride", f"the stride along {axis} is taken from the other axis", made(both)
    if (p.stride_h, p.stride_w) != (1, 1):
        yield "stride", "the stride is ignored", made(replace(p, stride_h=1, stride_w=1))
    for top, left in ((1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1)):
        shifted = replace(p, pad_top=p.pad_top + top, pad_left=p.pad_left + left)
        axes = " and ".join(n for n, step in (("top", top), ("left", left)) if step)
        more = "more" if top + left > 0 else "less"
        yield "pad", f"the padding is off by one: one {more} at the {axes}", made(shifted)
    if p.pad_top or p.pad_left:
        yield "pad", "the padding is ignored", made(replace(p, pad_top=0, pad_left=0))
        if p.pad_top != p.pad_left:
            swapped = replace(p, pad_top=p.pad_left, pad_left=p.pad_top)
            yield "pad", "the padding at the top and at the left is swapped", made(swapped)
    if (p.dilation_h, p.dilation_w) != (1, 1):
        yield "dilation", "the dilation is ignored", made(replace(p, dilation_h=1, dilation_w=1))
    if p.kh * p.kw > 1:
        flipped = weight[:, :, ::-1, ::-1]
        yield "kernel", "the kernel is flipped: a convolution, not a cross-correlation", made(w=flipped)
    if p.kh == p.kw > 1:
        yield "kernel", "the kernel's rows and columns are swapped", made(w=weight.swapaxes(2, 3))
    if p.n > 1:
        right = made()
        same = np.broadcast_to(right[:1], right.shape)
        yield "batch_one_only", "every image gets the first image's answer", same
        for value, words in ((0.0, "zeros"), (np.nan, "NaN")):
            only = np.full_like(right, value)
            only[0] = right[0]
            yield "batch_one_only", f"right for the first image, {words} for the others", only


def convolution(
    p: Conv,
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    *,
    first_group: bool = False,
    interleaved: bool = False,
) -> np.ndarray:
    """The sum that `p` says, (n, m, out_h, out_w), every element outside the image being 0, whatever the
    padding: first_group: all maps read the first group's channels; interleaved: map i is of group i mod
    group."""
    y = np.empty((p.n, p.m, p.out_h, p.out_w))
    rows = np.arange(p.out_h)[:, None] * p.stride_h - p.pad_top + np.arange(p.kh) * p.dilation_h
    columns = np.arange(p.out_w)[:, None] * p.stride_w - p.pad_left + np.arange(p.kw) * p.dilation_w
    seen = x[:, :, rows.clip(0, p.h - 1)][..., columns.clip(0, p.w - 1)]  # (n, c, out_h, kh, out_w, kw)
    inside = ((rows >= 0) & (rows < p.h))[:, :, None, None] & ((columns >= 0) & (columns < p.w))
    seen = seen * inside
    channels, maps = p.c // p.group, p.m // p.group
    weight = weight.reshape(p.m, channels, p.kh, p.kw)
    for g in range(p.group):
        first = 0 if first_group else g * channels
        part = np.arange(g, p.m, p.group) if interleaved else np.arange(g * maps, (g + 1) * maps)
        y[:, part] = np.einsum(
            "ncarbs,mcrs->nmab", seen[:, first : first + channels], weight[part], optimize=True
        )
    if bias is not None:
        y += bias.reshape(-1, 1, 1)
    return _activated(y, p.activation)


def _late_bias(p: Conv, x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return convolution(p, x, weight, None) + bias.reshape(-1, 1, 1)


def _activated(y: np.ndarray, kind: str | None) -> np.ndarray:
    with np.errstate(all="ignore"):
        if kind == "relu":
            return np.maximum(y, 0)
        if kind == "tanh":
            return np.tanh(y)
        return 1 / (1 + np.exp(-y)) if kind == "sigmoid" else y
